package scheduledjob_test

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

func nightly() *v1alpha1.ScheduledJob {
	sj := &v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid-1", ResourceVersion: "7"}}
	t := &sj.Spec.JobTemplate
	t.Labels, t.Annotations = map[string]string{"team": "till"}, map[string]string{"note": "job"}
	t.Spec.Template.Labels, t.Spec.Template.Annotations = map[string]string{"app": "report"}, map[string]string{"note": "pod"}
	t.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "report"}}}
	return sj
}

// A Job is its template, and names the ScheduledJob that created it and the nominal time; so do its Pods.
func TestBuildJob(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 7, 1, 2, 0, 0, 0, berlin)
	sj := nightly()
	before := sj.DeepCopy()
	j := scheduledjob.BuildJob(sj, at, v1alpha1.DefaultManagedBy, berlin)

	if want := "nightly-" + events.NominalHash(at); j.Name != want || j.Namespace != "shop" {
		t.Errorf("it is %s/%s, want shop/%s", j.Namespace, j.Name, want)
	}
	known := map[string]string{
		batchv1.CronJobScheduledTimestampAnnotation: "2026-07-01T02:00:00+02:00",
		v1alpha1.ScheduledJobAnnotation:             "nightly",
		v1alpha1.NominalTimeAnnotation:              "2026-07-01T00:00:00Z",
	}
	var by corev1.SerializedReference
	if err := json.Unmarshal([]byte(j.Annotations[v1alpha1.CreatedByAnnotation]), &by); err != nil {
		t.Error(err)
	}
	if r := by.Reference; by.Kind != "SerializedReference" || r.Kind != "ScheduledJob" || r.Name != "nightly" || r.Namespace != "shop" || r.UID != "uid-1" {
		t.Errorf("it was created by %+v", by)
	}
	delete(j.Annotations, v1alpha1.CreatedByAnnotation)
	for what, c := range map[string]struct{ have, want map[string]string }{
		"annotations of the Job":  {j.Annotations, with(known, "note", "job")},
		"annotations of its Pods": {j.Spec.Template.Annotations, with(known, "note", "pod")},
		"labels of the Job":       {j.Labels, map[string]string{"team": "till", v1alpha1.ScheduledJobUIDLabel: "uid-1"}},
		"labels of its Pods":      {j.Spec.Template.Labels, map[string]string{"app": "report"}},
	} {
		if !maps.Equal(c.have, c.want) {
			t.Errorf("%s: %v, want %v", what, c.have, c.want)
		}
	}
	owner := metav1.GetControllerOf(j)
	if owner == nil || owner.UID != "uid-1" || owner.Kind != "ScheduledJob" || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
		t.Errorf("its owner is %v", owner)
	}
	if by := j.Spec.ManagedBy; by == nil || *by != v1alpha1.DefaultManagedBy {
		t.Errorf("it is managed by %v", by)
	}
	if got := sj.Spec.JobTemplate.Spec.Template.Annotations; !maps.Equal(got, before.Spec.JobTemplate.Spec.Template.Annotations) {
		t.Errorf("the template has become %v", got)
	}
	// What BuildJob built is recognized.
	j.UID = "job-1"
	if uid, run, ok := events.ProjectRun(j); !ok || uid != "uid-1" || !run.Nominal.Equal(at) {
		t.Errorf("it is seen as %s %+v", uid, run)
	}
}

// A Job that a user starts is marked as such. A Job that makes up for a nominal time is the Job of that time, by its name. A Job
// for now has no nominal time, though its containers read one.
func TestBuildJobsThatAUserStarts(t *testing.T) {
	at := time.Date(2026, 7, 1, 2, 0, 0, 0, time.UTC)
	backfill := scheduledjob.BuildBackfill(nightly(), at, v1alpha1.DefaultManagedBy, time.UTC)
	if _, run, ok := events.ProjectRun(backfill); !ok || !run.Manual || !run.Nominal.Equal(at) || run.Name != scheduledjob.BuildJob(nightly(), at, "", time.UTC).Name {
		t.Errorf("the backfill is seen as %+v", run)
	}
	manual := scheduledjob.BuildManual(nightly(), "abcde", at, v1alpha1.DefaultManagedBy)
	if _, run, ok := events.ProjectRun(manual); !ok || !run.Manual || !run.Nominal.IsZero() || run.Name != "nightly-abcde" {
		t.Errorf("the manual one is seen as %+v", run)
	}
	for what, j := range map[string]*batchv1.Job{"backfill": backfill, "manual": manual} {
		if got := j.Spec.Template.Annotations[v1alpha1.NominalTimeAnnotation]; got != "2026-07-01T02:00:00Z" {
			t.Errorf("the containers of the %s one read %q", what, got)
		}
	}
}

// An annotation in the template about who started a Job does not apply to a Job of the schedule: users copy a Job's annotations
// into templates.
func TestBuildJobIsTheClocksWhateverTheTemplateSays(t *testing.T) {
	sj := nightly()
	sj.Spec.JobTemplate.Annotations[v1alpha1.InstantiateAnnotation] = v1alpha1.InstantiateManual
	j := scheduledjob.BuildJob(sj, time.Unix(0, 0), v1alpha1.DefaultManagedBy, time.UTC)
	if _, run, ok := events.ProjectRun(j); !ok || run.Manual {
		t.Errorf("it is seen as %+v", run)
	}
}

// A template that sets managedBy keeps it.
func TestBuildJobForAnotherController(t *testing.T) {
	sj := nightly()
	sj.Spec.JobTemplate.Spec.ManagedBy = new("kubernetes.io/job-controller")
	if by := scheduledjob.BuildJob(sj, time.Unix(0, 0), v1alpha1.DefaultManagedBy, time.UTC).Spec.ManagedBy; *by != "kubernetes.io/job-controller" {
		t.Errorf("it is managed by %s", *by)
	}
}

func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	out[key] = value
	return out
}
