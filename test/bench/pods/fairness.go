package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// warm is how long the big Job runs before anything is measured.
	warm = 20 * time.Second
	// smallWait is how long one small Job may take at most.
	smallWait = 5 * time.Minute
	// between is the pause between two small Jobs.
	between = 500 * time.Millisecond
)

// waits are how long small Jobs waited for a controller: for their Pod, and, after its end, for their condition. The time in
// between is the node's, which is busy.
type waits struct{ pod, condition []time.Duration }

// measureFairness runs small Jobs alone and beside a big one, under jobstream and under the built-in controller.
func (o options) measureFairness(ctx context.Context, s *harness.System) error {
	rows := [][]string{{"controller", "beside", "Job to Pod p50", "p99", "Pod's end to Complete p50", "p99", "Pods/s of the big Job"}}
	for _, c := range []struct{ name, managedBy string }{{"jobstream", v1alpha1.DefaultManagedBy}, {"built-in", batchv1.JobControllerName}} {
		for _, beside := range []bool{false, true} {
			report.Say("%s, beside a big Job: %v", c.name, beside)
			w, rate, err := o.smallJobs(ctx, s, c.managedBy, beside)
			if err != nil {
				return err
			}
			row := []string{c.name, "nothing"}
			if beside {
				row[1] = fmt.Sprintf("a Job of %d Pods", o.pods)
			}
			for _, all := range [][]time.Duration{w.pod, w.condition} {
				report.Sort(all)
				row = append(row, millis(report.Quantile(all, 50)), millis(report.Quantile(all, 99)))
			}
			rows = append(rows, append(row, rate))
		}
	}
	fmt.Printf("\n%d Jobs of one Pod, one after the other; the big Job runs %d at once.\n\n", o.small, o.parallelism)
	report.Table(rows)
	return nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// smallJobs runs them, and returns how fast the big Job was meanwhile.
func (o options) smallJobs(ctx context.Context, s *harness.System, managedBy string, beside bool) (w waits, rate string, err error) {
	namespace, err := bulk.NewNamespace(ctx, s)
	if err != nil {
		return w, "", err
	}
	jobs := s.Client.BatchV1().Jobs(namespace)
	if beside {
		if _, err := jobs.Create(ctx, jobOf("big", managedBy, o.pods, o.parallelism), metav1.CreateOptions{}); err != nil {
			return w, "", err
		}
		if err := bulk.Rest(ctx, warm); err != nil {
			return w, "", err
		}
	}
	before, began, err := succeeded(ctx, s, namespace, beside)
	if err != nil {
		return w, "", err
	}
	for n := range o.small {
		if err := w.one(ctx, s, namespace, jobOf("small-"+strconv.Itoa(n), managedBy, 1, 1)); err != nil {
			return w, "", err
		}
		if err := bulk.Rest(ctx, between); err != nil {
			return w, "", err
		}
	}
	after, ended, err := succeeded(ctx, s, namespace, beside)
	if err != nil || !beside {
		return w, "", err
	}
	report.Say("deleting the big Job")
	if err := jobs.Delete(ctx, "big", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}); err != nil {
		return w, "", err
	}
	return w, fmt.Sprintf("%.0f", float64(after-before)/ended.Sub(began).Seconds()), awaitGone(ctx, s, namespace)
}

// succeeded returns how many Pods of the big Job have been counted by now.
func succeeded(ctx context.Context, s *harness.System, namespace string, beside bool) (n int32, now time.Time, err error) {
	if !beside {
		return 0, now, nil
	}
	j, err := s.Client.BatchV1().Jobs(namespace).Get(ctx, "big", metav1.GetOptions{})
	if err != nil {
		return 0, now, err
	}
	return j.Status.Succeeded, time.Now(), nil
}

// awaitGone waits until the big Job and its Pods are deleted, so that the next measurement does not pay for it.
func awaitGone(ctx context.Context, s *harness.System, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, smallWait)
	defer cancel()
	return harness.Poll(ctx, func(ctx context.Context) error {
		if _, err := s.Client.BatchV1().Jobs(namespace).Get(ctx, "big", metav1.GetOptions{}); err == nil {
			return errors.New("the big Job still exists")
		}
		return nil
	})
}

// one runs a small Job and records how long it waited.
func (w *waits) one(ctx context.Context, s *harness.System, namespace string, j *batchv1.Job) error {
	ctx, cancel := context.WithTimeout(ctx, smallWait)
	defer cancel()
	byName := metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + j.Name}
	pods, err := s.Client.CoreV1().Pods(namespace).Watch(ctx, byName)
	if err != nil {
		return err
	}
	defer pods.Stop()
	jobs, err := s.Client.BatchV1().Jobs(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + j.Name})
	if err != nil {
		return err
	}
	defer jobs.Stop()
	made := time.Now()
	if _, err := s.Client.BatchV1().Jobs(namespace).Create(ctx, j, metav1.CreateOptions{}); err != nil {
		return err
	}
	seen, err := when(ctx, pods, func(o any) bool { _, ok := o.(*corev1.Pod); return ok })
	if err != nil {
		return fmt.Errorf("%s has no Pod: %w", j.Name, err)
	}
	over, err := when(ctx, pods, func(o any) bool { p, ok := o.(*corev1.Pod); return ok && p.Status.Phase == corev1.PodSucceeded })
	if err != nil {
		return fmt.Errorf("the Pod of %s does not end: %w", j.Name, err)
	}
	complete, err := when(ctx, jobs, func(o any) bool { j, ok := o.(*batchv1.Job); return ok && j.Status.CompletionTime != nil })
	if err != nil {
		return fmt.Errorf("%s does not complete: %w", j.Name, err)
	}
	w.pod, w.condition = append(w.pod, seen.Sub(made)), append(w.condition, max(0, complete.Sub(over)))
	return nil
}

// when waits for an object and returns the time of its observation.
func when(ctx context.Context, w watch.Interface, wanted func(any) bool) (time.Time, error) {
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case e, open := <-w.ResultChan():
			if !open {
				return time.Time{}, errors.New("the watch has ended")
			}
			if wanted(e.Object) {
				return time.Now(), nil
			}
		}
	}
}

func jobOf(name, managedBy string, pods, parallelism int) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		ManagedBy: ptr.To(managedBy), Completions: ptr.To(int32(pods)), Parallelism: ptr.To(int32(parallelism)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}}}},
	}}
}
