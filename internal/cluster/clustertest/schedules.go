package clustertest

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster"
)

// Noon is a nominal time of the schedules below.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// CreateSchedule creates an hourly ScheduledJob and returns it with its function's key.
func (w *World) CreateSchedule(name string, change ...func(*v1alpha1.ScheduledJob)) (*v1alpha1.ScheduledJob, events.Key) {
	w.Helper()
	j := &v1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ScheduledJobSpec{
			Schedule: "0 * * * *",
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "none"}},
			}}}},
		},
	}
	for _, f := range change {
		f(j)
	}
	created := w.Schedule(w.Admin.RESTClient().Post().Body(&cluster.ScheduledJob{ScheduledJob: *j}))
	return created, events.Key{Function: scheduledjob.Name, Namespace: w.NS, UID: created.UID}
}

// Schedule sends a request about a ScheduledJob of the world's namespace.
func (w *World) Schedule(r *rest.Request) *v1alpha1.ScheduledJob {
	w.Helper()
	out := &cluster.ScheduledJob{}
	if err := r.Namespace(w.NS).Resource(v1alpha1.ScheduledJobResource).Do(w.Context()).Into(out); err != nil {
		w.Fatal(err)
	}
	return &out.ScheduledJob
}

// LiveSchedule reads the ScheduledJob.
func (w *World) LiveSchedule(name string) *v1alpha1.ScheduledJob {
	w.Helper()
	return w.Schedule(w.Admin.RESTClient().Get().Name(name))
}

// EditSchedule does what a user does with kubectl edit.
func (w *World) EditSchedule(name string, change func(*v1alpha1.ScheduledJob)) *v1alpha1.ScheduledJob {
	w.Helper()
	j := w.LiveSchedule(name)
	change(j)
	return w.Schedule(w.Admin.RESTClient().Put().Name(name).Body(&cluster.ScheduledJob{ScheduledJob: *j}))
}

// SettleSchedule writes a status as the function does.
func (w *World) SettleSchedule(name string, change func(*v1alpha1.ScheduledJobStatus)) *v1alpha1.ScheduledJob {
	w.Helper()
	j := w.LiveSchedule(name)
	change(&j.Status)
	return w.Schedule(w.Admin.RESTClient().Put().Name(name).SubResource("status").Body(&cluster.ScheduledJob{ScheduledJob: *j}))
}

// DeleteSchedule deletes the ScheduledJob and none of its dependents: there is no garbage collector here.
func (w *World) DeleteSchedule(name string) {
	w.Helper()
	w.Schedule(w.Admin.RESTClient().Delete().Name(name).Body(&metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}

// MakeRun creates the Job of a nominal time.
func (w *World) MakeRun(j *v1alpha1.ScheduledJob, nominal time.Time) *batchv1.Job {
	w.Helper()
	out, err := w.BatchV1().Jobs(w.NS).Create(w.Context(), scheduledjob.BuildJob(j, nominal, v1alpha1.DefaultManagedBy, time.UTC), metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return out
}
