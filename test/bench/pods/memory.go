package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// perJob is how many of the Pods each Job has.
	perJob = 1000
	// relist is how often the trigger lists everything here: often enough to see two within the measurement.
	relist = 30 * time.Second
	// makers is how many Pods are created at once.
	makers = 16
)

// measureMemory creates Pods that wait for a scheduler, of Jobs for jobstream, while no reconciler runs: only the trigger uses
// memory for them.
func (o options) measureMemory(ctx context.Context, s *harness.System) error {
	for _, p := range s.Reconcilers {
		if err := p.Stop(); err != nil {
			return err
		}
	}
	trigger := s.Triggers[0]
	trigger.Args = append(trigger.Args, "--relist-interval="+relist.String())
	rows := [][]string{{"the trigger", "RSS", "peak RSS", "CPU s"}}
	add := func(when string) error {
		u, err := report.UsageOf(trigger.Path)
		rows = append(rows, []string{when, report.Mebibytes(u.RSS), report.Mebibytes(u.Peak), fmt.Sprintf("%.1f", u.CPU.Seconds())})
		return err
	}
	if err := add("without any Pod"); err != nil {
		return err
	}
	if err := o.makePods(ctx, s); err != nil {
		return err
	}
	if err := add(fmt.Sprintf("has seen %d Pods come", o.pods)); err != nil {
		return err
	}
	if err := trigger.Kill(); err != nil {
		return err
	}
	if err := trigger.Start(); err != nil {
		return err
	}
	if err := harness.Ready(ctx, trigger); err != nil {
		return err
	}
	if err := add("killed and started again, ready"); err != nil {
		return err
	}
	report.Say("two relists")
	if err := bulk.Rest(ctx, 3*relist); err != nil {
		return err
	}
	if err := add("after two relists"); err != nil {
		return err
	}
	fmt.Printf("\n%d Pods of %d Jobs, none of them scheduled.\n\n", o.pods, (o.pods+perJob-1)/perJob)
	report.Table(rows)
	return nil
}

// makePods creates the Jobs and their Pods, as a reconciler would.
func (o options) makePods(ctx context.Context, s *harness.System) error {
	namespace, err := bulk.NewNamespace(ctx, s)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(makers)
	for first := 0; first < o.pods; first += perJob {
		j, err := s.Client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "job-" + strconv.Itoa(first)},
			Spec: batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Parallelism: ptr.To[int32](perJob), Completions: ptr.To[int32](perJob),
				Template: corev1.PodTemplateSpec{Spec: waiting()}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		for n := first; n < min(first+perJob, o.pods); n++ {
			if n%10000 == 0 {
				report.Say("%d of %d Pods", n, o.pods)
			}
			g.Go(func() error {
				_, err := s.Client.CoreV1().Pods(namespace).Create(ctx, podOf(j, n), metav1.CreateOptions{})
				return err
			})
		}
	}
	return g.Wait()
}

// podOf returns a Pod like one that a reconciler has created, with the environment and the annotations that Pods have.
func podOf(j *batchv1.Job, n int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: j.Name + "-" + strconv.Itoa(n), Finalizers: []string{batchv1.JobTrackingFinalizer},
		Labels:          map[string]string{v1alpha1.ManagedLabel: "true", batchv1.ControllerUidLabel: string(j.UID), batchv1.JobNameLabel: j.Name},
		Annotations:     map[string]string{"example.com/notes": strings.Repeat("x", 1000)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}, Spec: waiting()}
}

// waiting returns the spec of a Pod that no scheduler binds.
func waiting() corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/never"}},
		Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"},
			Env: []corev1.EnvVar{{Name: "TEXT", Value: strings.Repeat("x", 1000)}}}}}
}
