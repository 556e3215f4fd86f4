package main

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/bench/bulk"
)

// cluster is a system in which schedules are made.
type cluster struct{ *bulk.Cluster }

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

// jobstream creates ScheduledJobs.
func (c *cluster) jobstream(namespace, schedule string) bulk.Maker {
	return c.ScheduledJobs(v1alpha1.ScheduledJobSpec{Schedule: schedule, JobTemplate: template()}, func(int) string { return namespace })
}

// builtIn creates CronJobs with a time zone, since the default is that of kube-controller-manager.
func (c *cluster) builtIn(namespace, schedule string) bulk.Maker {
	return func(ctx context.Context, n int) error {
		_, err := c.Client.BatchV1().CronJobs(namespace).Create(ctx, &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Name: bulk.Name("s", n)},
			Spec:       batchv1.CronJobSpec{Schedule: schedule, TimeZone: ptr.To("Etc/UTC"), JobTemplate: template()},
		}, metav1.CreateOptions{})
		return err
	}
}

// watchJobs observes new Jobs, only their metadata.
func (c *cluster) watchJobs(ctx context.Context, namespace string) (*bulk.Observations, error) {
	jobs := &bulk.Observations{}
	return jobs, c.SeeJobs(ctx, namespace, func(j *metav1.PartialObjectMetadata) { jobs.Add(j) })
}

// watchDecided observes ScheduledJobs once the reconciler has.
func (c *cluster) watchDecided(ctx context.Context, namespace string) (*bulk.Observations, error) {
	return c.WatchScheduledJobs(ctx, namespace, bulk.Decided)
}
