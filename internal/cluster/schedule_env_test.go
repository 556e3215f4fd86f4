package cluster

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (w *world) createSchedule(name string, change ...func(*v1alpha1.ScheduledJob)) (*v1alpha1.ScheduledJob, events.Key) {
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
	created := w.schedule(w.schedules.rest.Post().Body(&wireScheduledJob{ScheduledJob: *j}))
	return created, events.Key{Function: scheduledJobFunction, Namespace: w.ns, UID: created.UID}
}

// schedule does a request about a ScheduledJob of the world's namespace.
func (w *world) schedule(r *rest.Request) *v1alpha1.ScheduledJob {
	w.Helper()
	out := &wireScheduledJob{}
	if err := r.Namespace(w.ns).Resource(v1alpha1.ScheduledJobResource).Do(w.Context()).Into(out); err != nil {
		w.Fatal(err)
	}
	return &out.ScheduledJob
}

func (w *world) liveSchedule(name string) *v1alpha1.ScheduledJob {
	w.Helper()
	return w.schedule(w.schedules.rest.Get().Name(name))
}

func (w *world) editSchedule(name string, change func(*v1alpha1.ScheduledJob)) *v1alpha1.ScheduledJob {
	w.Helper()
	j := w.liveSchedule(name)
	change(j)
	return w.schedule(w.schedules.rest.Put().Name(name).Body(&wireScheduledJob{ScheduledJob: *j}))
}

// settle writes a status as the function does.
func (w *world) settleSchedule(name string, change func(*v1alpha1.ScheduledJobStatus)) *v1alpha1.ScheduledJob {
	w.Helper()
	j := w.liveSchedule(name)
	change(&j.Status)
	return w.schedule(w.schedules.rest.Put().Name(name).SubResource("status").Body(&wireScheduledJob{ScheduledJob: *j}))
}

// deleteSchedule deletes it and nothing that it owns: there is no garbage collector here.
func (w *world) deleteSchedule(name string) {
	w.Helper()
	w.schedule(w.schedules.rest.Delete().Name(name).Body(&metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}))
}

// makeRun makes the Job of a nominal time.
func (w *world) makeRun(j *v1alpha1.ScheduledJob, nominal time.Time) *batchv1.Job {
	w.Helper()
	out, err := w.BatchV1().Jobs(w.ns).Create(w.Context(), scheduledjob.BuildJob(j, nominal, v1alpha1.DefaultManagedBy, time.UTC), metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func createJobEffect(j *v1alpha1.ScheduledJob, nominal time.Time) effect.CreateJob {
	name := scheduledjob.BuildJob(j, nominal, "", time.UTC).Name
	return effect.CreateJob{ScheduledJob: j.Name, Name: name, Nominal: nominal, Generation: j.Generation}
}

// watchSchedules makes a watcher watch ScheduledJobs, too.
func watchSchedules(t *testing.T, sink *memorySink, change ...func(*WatcherConfig)) *watching {
	t.Helper()
	client, schedules, seen := testClients(t)
	all := append([]func(*WatcherConfig){func(c *WatcherConfig) { c.ScheduledJobs = schedules }}, change...)
	return startWatcher(t, sink, client, seen, all...)
}
