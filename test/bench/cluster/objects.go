package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/dev/processnode"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
)

const (
	// namespaces is how many share the cluster: jobstream gives each its share of turns and requests, so one alone would be a special case.
	namespaces = 10
	// ttl is how many seconds the Job of a run stays after its end.
	ttl = 60
	// forever is longer than any measurement.
	forever = 1000 * time.Hour
	// longPrefix begins the names of the Jobs that run all the time.
	longPrefix = "long"
)

// namespaceOf is where the n-th object is.
func namespaceOf(n int) string { return fmt.Sprintf("team-%d", n%namespaces) }

// podOf is a Pod that runs for so long.
func podOf(d time.Duration) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{processnode.DurationAnnotation: d.String()}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}}},
	}
}

// makeLong creates a Job that runs all the time.
func (b *bench) makeLong(c *bulk.Cluster) bulk.Maker {
	pods := ptr.To(int32(b.part.podsOfJob))
	return func(ctx context.Context, n int) error {
		_, err := c.Client.BatchV1().Jobs(namespaceOf(n)).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: bulk.Name(longPrefix, n)},
			Spec:       batchv1.JobSpec{ManagedBy: ptr.To(v1alpha1.DefaultManagedBy), Completions: pods, Parallelism: pods, Template: podOf(forever)},
		}, metav1.CreateOptions{})
		return err
	}
}

// spec is that of every ScheduledJob. The limits of its history are the defaults; none is reached, since the Jobs are gone before.
func (b *bench) spec() v1alpha1.ScheduledJobSpec {
	return v1alpha1.ScheduledJobSpec{Schedule: b.schedule, JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: ptr.To[int32](ttl), Template: podOf(0)}}}
}

// edit changes nothing that a run depends on.
const edit = `{"spec":{"jobTemplate":{"metadata":{"annotations":{"example.com/edited":"once"}}}}}`

// load creates everything, and returns the ScheduledJobs when all Pods run and every ScheduledJob is known.
func (b *bench) load(ctx context.Context, c *bulk.Cluster) (*bulk.Observations, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the watches are not a part of what is measured
	for n := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(n)}}
		if _, err := c.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create a namespace: %w", err)
		}
	}
	running, err := b.watchRunning(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.Make(ctx, "Jobs", b.part.jobs, b.makeLong(c)); err != nil {
		return nil, err
	}
	if _, err := b.each(ctx, c, "ScheduledJobs", "decided", c.ScheduledJobs(b.spec(), namespaceOf), bulk.Decided); err != nil {
		return nil, err
	}
	known, err := b.each(ctx, c, "edits of ScheduledJobs", "observed", c.EditScheduledJobs(edit, namespaceOf), isKnown)
	if err != nil {
		return nil, err
	}
	return known, b.all(ctx, c, "Jobs with all Pods running", running, b.part.jobs)
}

// each does something to each ScheduledJob, and returns when all are as wanted.
func (b *bench) each(ctx context.Context, c *bulk.Cluster, what, wanted string, one bulk.Maker, is func(*unstructured.Unstructured) bool) (*bulk.Observations, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := c.WatchScheduledJobs(ctx, metav1.NamespaceAll, is)
	if err != nil {
		return nil, err
	}
	if err := c.Make(ctx, what, b.part.schedules, one); err != nil {
		return nil, err
	}
	return seen, b.all(ctx, c, what+" "+wanted, seen, b.part.schedules)
}

// all waits until there are so many. It is an error if they do not come in time.
func (b *bench) all(ctx context.Context, c *bulk.Cluster, what string, seen *bulk.Observations, count int) error {
	if err := c.Await(ctx, what, seen.Count, count, time.Now().Add(b.timeout())); err != nil {
		return err
	}
	if n := seen.Count(); n < count {
		return fmt.Errorf("%s: after %v only %d of %d", what, b.timeout(), n, count)
	}
	return nil
}

// isKnown reports whether the reconciler has decided about the ScheduledJob and observed the edit of it. For a new one it lists nothing
// until its first time comes, and then everything in its namespace, once. In a cluster that has existed for longer than an hour every
// schedule has had its first time; here, within the first hour, each run would cost such a list. The edit, once the first status is
// written, makes the reconciler list now.
func isKnown(scheduledJob *unstructured.Unstructured) bool {
	observed, _, err := unstructured.NestedInt64(scheduledJob.Object, "status", "observedGeneration")
	return err == nil && bulk.Decided(scheduledJob) && scheduledJob.GetGeneration() > 1 && observed == scheduledJob.GetGeneration()
}

// timeout is how long the Pods and the ScheduledJobs may take at most: several times as long as two busy cores need.
func (b *bench) timeout() time.Duration {
	return 10*time.Minute + time.Duration(b.part.pods()+b.part.schedules)*200*time.Millisecond
}

// watchRunning observes the Jobs whose Pods all run.
func (b *bench) watchRunning(ctx context.Context, c *bulk.Cluster) (*bulk.Observations, error) {
	jobs, running := c.Client.BatchV1().Jobs(metav1.NamespaceAll), &bulk.Observations{}
	all := int32(b.part.podsOfJob)
	see := func(object any) {
		if j, ok := object.(*batchv1.Job); ok && isLong(j) && j.Status.Active == all && ptr.Deref(j.Status.Ready, 0) == all {
			running.Add(j)
		}
	}
	report.Say("%d Jobs of %d Pods, %d ScheduledJobs", b.part.jobs, b.part.podsOfJob, b.part.schedules)
	return running, bulk.See(ctx, &batchv1.Job{}, see, &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return jobs.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return jobs.Watch(ctx, o) },
	})
}

// isLong tells the Jobs that run all the time from those of runs, which have an owner.
func isLong(j *batchv1.Job) bool { return metav1.GetControllerOf(j) == nil }
