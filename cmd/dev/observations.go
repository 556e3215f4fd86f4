package main

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// observation is a Job or a Pod from a watch.
type observation struct {
	at   time.Time
	job  *batchv1.Job
	pod  *corev1.Pod
	gone bool
}

// watchAll watches the Jobs and Pods of a namespace from now on, until ctx ends. It restarts a watch that breaks.
func watchAll(ctx context.Context, client kubernetes.Interface, namespace string) (<-chan observation, error) {
	// Both watches begin at one version: in a cluster with a single etcd, such as this one, all resources share one version counter.
	now, err := client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	observations := make(chan observation, 100)
	for _, open := range []cache.WatchFuncWithContext{
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.BatchV1().Jobs(namespace).Watch(ctx, o)
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Pods(namespace).Watch(ctx, o)
		},
	} {
		w, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: open})
		if err != nil {
			return nil, err
		}
		go forward(ctx, w, observations)
	}
	return observations, nil
}

// forward sends what the watch shows to observations.
func forward(ctx context.Context, w watch.Interface, observations chan<- observation) {
	defer w.Stop()
	for e := range w.ResultChan() {
		s := observation{at: time.Now(), gone: e.Type == watch.Deleted}
		switch o := e.Object.(type) {
		case *batchv1.Job:
			s.job = o
		case *corev1.Pod:
			s.pod = o
		default:
			continue
		}
		select {
		case observations <- s:
		case <-ctx.Done():
			return
		}
	}
}
