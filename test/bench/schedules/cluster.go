package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// creators is how many objects are created at once.
const creators = 32

// scheduledJobs is the resource of ScheduledJobs.
var scheduledJobs = v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)

// cluster is a system with the clients that the benchmark needs, an administrator's, without a rate limit.
type cluster struct {
	*harness.System
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func newCluster(s *harness.System) (*cluster, error) {
	config := rest.CopyConfig(s.REST)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	m, err := metadata.NewForConfig(s.REST)
	return &cluster{System: s, dynamic: d, metadata: m}, err
}

// broken returns an error for a part that has ended by itself.
func (c *cluster) broken() error {
	select {
	case err := <-c.ControlPlane.Died():
		return fmt.Errorf("the control plane broke: %w", err)
	default:
	}
	for _, p := range append([]*harness.Process{c.NATS.Process}, append(c.Triggers, c.Reconcilers...)...) {
		if !p.Running() {
			return fmt.Errorf("%s ended:\n%s", p.Name, harness.Tail(p.Printed(), 10))
		}
	}
	return nil
}

// newNamespace creates a namespace and returns its name.
func (c *cluster) newNamespace(ctx context.Context) (string, error) {
	ns, err := c.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return ns.Name, nil
}

// template is of Jobs without Pods: they are suspended.
func template() batchv1.JobTemplateSpec {
	return batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Suspend: ptr.To(true),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}},
		}},
	}}
}

// maker creates one schedule of that name.
type maker func(ctx context.Context, name string) error

// jobstream creates ScheduledJobs.
func (c *cluster) jobstream(namespace, schedule string) maker {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ScheduledJob{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind},
		Spec:     v1alpha1.ScheduledJobSpec{Schedule: schedule, JobTemplate: template()},
	})
	delete(content, "status")
	pattern := &unstructured.Unstructured{Object: content}
	return func(ctx context.Context, name string) error {
		if err != nil {
			return err
		}
		s := pattern.DeepCopy()
		s.SetName(name)
		_, err := c.dynamic.Resource(scheduledJobs).Namespace(namespace).Create(ctx, s, metav1.CreateOptions{})
		return err
	}
}

// builtIn creates CronJobs with a time zone, since the default is that of kube-controller-manager.
func (c *cluster) builtIn(namespace, schedule string) maker {
	return func(ctx context.Context, name string) error {
		_, err := c.Client.BatchV1().CronJobs(namespace).Create(ctx, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       batchv1.CronJobSpec{Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), JobTemplate: template()},
		}, metav1.CreateOptions{})
		return err
	}
}

// makeAll creates so many, some at a time. It ends with the first error.
func (c *cluster) makeAll(ctx context.Context, what string, count int, one maker) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next, made atomic.Int64
	var all sync.WaitGroup
	for range creators {
		all.Go(func() {
			for i := next.Add(1); i <= int64(count) && ctx.Err() == nil; i = next.Add(1) {
				if err := one(ctx, fmt.Sprintf("s-%06d", i)); err != nil {
					fail(fmt.Errorf("make %s: %w", what, err))
					return
				}
				made.Add(1)
			}
		})
	}
	err := await(ctx, c, what+" made", func() int { return int(made.Load()) }, count, time.Time{})
	fail(err)
	all.Wait()
	if err != nil {
		return context.Cause(ctx) // the first of all errors
	}
	return nil
}
