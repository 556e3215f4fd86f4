package events_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// An older definition has fewer defaults than the API server applies today: what the user has left out is what the documentation says.
func TestDefaultsOfAScheduledJob(t *testing.T) {
	got := events.ProjectScheduledJob(&v1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: at(1)}}})
	want := events.ScheduledJob{Created: at(1), ConcurrencyPolicy: v1alpha1.AllowConcurrent, CatchUp: v1alpha1.CatchUpLatest,
		OnScheduleChange: v1alpha1.ChangeCatchesUp, SuccessfulJobs: 3, FailedJobs: 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What the user has written is taken as it is, times in UTC.
func TestProjectScheduledJob(t *testing.T) {
	elsewhere := func(second int) *metav1.Time {
		return &metav1.Time{Time: at(second).In(time.FixedZone("", 3600))}
	}
	deletion := metav1.Time{Time: at(9)}
	got := events.ProjectScheduledJob(&v1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: uid, ResourceVersion: "77", Generation: 4,
			CreationTimestamp: *elsewhere(1), DeletionTimestamp: &deletion},
		Spec: v1alpha1.ScheduledJobSpec{Schedule: "@daily", Schedules: []string{"0 1 * * *"}, Exclude: []string{"2026-01-01"},
			TimeZone: new("Europe/Berlin"), StartingDeadlineSeconds: new(int64(60)), ConcurrencyPolicy: v1alpha1.QueueConcurrent, QueueLimit: new(int32(7)),
			Suspend: new(true), CatchUp: v1alpha1.CatchUpAll, OnScheduleChange: v1alpha1.ChangeWaits, JitterSeconds: new(int32(30)),
			PauseAfterFailures: new(int32(5)), SuccessfulJobsHistoryLimit: new(int32(8)), FailedJobsHistoryLimit: new(int32(9)), TTLSecondsAfterFinished: new(int32(11)),
			NotBefore: elsewhere(2), NotAfter: elsewhere(3), RunAt: elsewhere(4), StartAfter: elsewhere(5)},
		Status: v1alpha1.ScheduledJobStatus{Missed: 2},
	})
	want := events.ScheduledJob{Namespace: "shop", Name: "nightly", UID: uid, Version: 77, Generation: 4, Deleting: true, Created: at(1),
		Schedule: "@daily", Schedules: []string{"0 1 * * *"}, Exclude: []string{"2026-01-01"},
		NotBefore: at(2), NotAfter: at(3), RunAt: at(4), StartAfter: at(5), TimeZone: "Europe/Berlin", StartingDeadlineSeconds: new(int64(60)),
		ConcurrencyPolicy: v1alpha1.QueueConcurrent, QueueLimit: 7, Suspended: true, CatchUp: v1alpha1.CatchUpAll, OnScheduleChange: v1alpha1.ChangeWaits,
		JitterSeconds: 30, PauseAfterFailures: 5, SuccessfulJobs: 8, FailedJobs: 9, TTLSecondsAfterFinished: new(int32(11)),
		Status: v1alpha1.ScheduledJobStatus{Missed: 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// The API server's limits hold also for an object that an older definition has accepted.
func TestLimitsOfAScheduledJob(t *testing.T) {
	for _, c := range []struct{ spec, queue, pause int32 }{
		{-1, 1, 0}, {0, 1, 0}, {1, 1, 1}, {10, 10, 10}, {100, 100, 100}, {101, 100, 100},
	} {
		got := events.ProjectScheduledJob(&v1alpha1.ScheduledJob{Spec: v1alpha1.ScheduledJobSpec{
			ConcurrencyPolicy: v1alpha1.QueueConcurrent, QueueLimit: &c.spec, PauseAfterFailures: &c.spec}})
		if got.QueueLimit != c.queue || got.PauseAfterFailures != c.pause {
			t.Errorf("queueLimit %d is %d, pauseAfterFailures %d is %d", c.spec, got.QueueLimit, c.spec, got.PauseAfterFailures)
		}
	}
	if got := events.ProjectScheduledJob(&v1alpha1.ScheduledJob{Spec: v1alpha1.ScheduledJobSpec{ConcurrencyPolicy: v1alpha1.QueueConcurrent}}); got.QueueLimit != 10 {
		t.Errorf("without a queueLimit, %d times may wait", got.QueueLimit)
	}
	if got := events.ProjectScheduledJob(&v1alpha1.ScheduledJob{Spec: v1alpha1.ScheduledJobSpec{QueueLimit: new(int32(5))}}); got.QueueLimit != 0 {
		t.Errorf("with another policy than Queue, %d times may wait", got.QueueLimit)
	}
	long := make([]string, 60)
	for i := range long {
		long[i] = strings.Repeat("x", 300)
	}
	got := events.ProjectScheduledJob(&v1alpha1.ScheduledJob{Spec: v1alpha1.ScheduledJobSpec{Schedules: long, Exclude: long}})
	if len(got.Schedules) != 11 || len(got.Exclude) != 51 || len(got.Exclude[0]) != 257 {
		t.Errorf("%d schedules and %d exclusions of %d bytes: functions/schedule refuses one more than the limit of each", len(got.Schedules), len(got.Exclude), len(got.Exclude[0]))
	}
}

// The Jobs of a ScheduledJob must not share a selector.
func TestASelectorOfItsOwnIsInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		spec    batchv1.JobSpec
		invalid bool
	}{
		"none":                  {batchv1.JobSpec{}, false},
		"manualSelector: false": {batchv1.JobSpec{ManualSelector: new(false)}, false},
		"manualSelector: true":  {batchv1.JobSpec{ManualSelector: new(true)}, true},
		"a selector":            {batchv1.JobSpec{Selector: &metav1.LabelSelector{}}, true},
	} {
		j := &v1alpha1.ScheduledJob{Spec: v1alpha1.ScheduledJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: c.spec}}}
		if got := events.ProjectScheduledJob(j).Invalid; (got != "") != c.invalid {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A Job belongs to a ScheduledJob if that controls it, and to nothing else of that name.
func TestProjectRun(t *testing.T) {
	owner := func(change func(*metav1.OwnerReference)) []metav1.OwnerReference {
		ref := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind, Name: "nightly", UID: uid, Controller: new(true)}
		change(&ref)
		return []metav1.OwnerReference{ref}
	}
	for name, c := range map[string]struct {
		change func(*metav1.OwnerReference)
		ok     bool
	}{
		"its controller":            {func(*metav1.OwnerReference) {}, true},
		"an owner, no controller":   {func(r *metav1.OwnerReference) { r.Controller = new(false) }, false},
		"another kind":              {func(r *metav1.OwnerReference) { r.Kind = "CronJob" }, false},
		"another group":             {func(r *metav1.OwnerReference) { r.APIVersion = "example.com/v1" }, false},
		"the longest UID":           {func(r *metav1.OwnerReference) { r.UID = types.UID(strings.Repeat("u", events.MaxUID)) }, true},
		"a UID that no object has":  {func(r *metav1.OwnerReference) { r.UID = types.UID(strings.Repeat("u", events.MaxUID+1)) }, false},
		"the longest name":          {func(r *metav1.OwnerReference) { r.Name = strings.Repeat("n", 253) }, true},
		"a name that no object has": {func(r *metav1.OwnerReference) { r.Name = strings.Repeat("n", 254) }, false},
	} {
		if _, _, ok := events.ProjectRun(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owner(c.change)}}); ok != c.ok {
			t.Errorf("%s: %v", name, ok)
		}
	}
	deletion := metav1.Time{Time: at(9)}
	condition := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: status, Reason: "BackoffLimitExceeded", LastTransitionTime: metav1.Time{Time: at(8)}}
	}
	base := events.Run{Name: "nightly-1", UID: "run", Version: 7, Created: at(1)}
	for _, c := range []struct {
		name        string
		annotations map[string]string
		deleting    bool
		status      batchv1.JobStatus
		want        func(*events.Run)
	}{
		{name: "it runs", want: func(*events.Run) {}},
		{name: "with a nominal time", annotations: map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "2026-01-02T04:04:05+01:00"},
			want: func(r *events.Run) { r.Nominal = at(5) }},
		{name: "with a nominal time that is none", annotations: map[string]string{batchv1.CronJobScheduledTimestampAnnotation: "soon"}, want: func(*events.Run) {}},
		{name: "a user has started it", annotations: map[string]string{v1alpha1.InstantiateAnnotation: v1alpha1.InstantiateManual}, want: func(r *events.Run) { r.Manual = true }},
		{name: "it is being deleted", deleting: true, want: func(r *events.Run) { r.Deleting = true }},
		{name: "Failed, and never started", status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{condition(batchv1.JobFailed, "True")}},
			want: func(r *events.Run) {
				r.Result, r.Finished, r.Reason = events.RunFailed, at(8), "BackoffLimitExceeded"
			}},
		{name: "Complete", status: batchv1.JobStatus{StartTime: &metav1.Time{Time: at(2)}, Conditions: []batchv1.JobCondition{condition(batchv1.JobComplete, "True")}},
			want: func(r *events.Run) {
				r.Result, r.Finished, r.Reason, r.Started = events.RunComplete, at(8), "BackoffLimitExceeded", at(2)
			}},
		{name: "not yet Complete", status: batchv1.JobStatus{StartTime: &metav1.Time{Time: at(2)}, Conditions: []batchv1.JobCondition{condition(batchv1.JobComplete, "False"),
			condition(batchv1.JobSuccessCriteriaMet, "True")}}, want: func(*events.Run) {}},
	} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly-1", UID: "run", ResourceVersion: "7", CreationTimestamp: metav1.Time{Time: at(1)},
			Annotations: c.annotations, OwnerReferences: owner(func(*metav1.OwnerReference) {})}, Status: c.status}
		if c.deleting {
			j.DeletionTimestamp = &deletion
		}
		want := base
		c.want(&want)
		if of, got, ok := events.ProjectRun(j); got != want || of != uid || !ok {
			t.Errorf("%s: of %s\ngot  %+v\nwant %+v", c.name, of, got, want)
		}
	}
}

// TestPaused: by failures in a row, until an edit of the spec.
func TestPaused(t *testing.T) {
	for _, c := range []struct {
		name                 string
		after, failed        int32
		observed, generation int64
		suspended            bool
		paused               bool
	}{
		{"fewer than the limit", 3, 2, 1, 1, false, false},
		{"as many", 3, 3, 1, 1, false, true},
		{"more, after a lower limit", 3, 4, 1, 1, false, true},
		{"the spec was edited since", 3, 3, 1, 2, false, false},
		{"no limit", 0, 9, 1, 1, false, false},
		{"no limit, and none has failed", 0, 0, 1, 1, false, false},
		{"fewer, and a user has suspended it", 3, 2, 1, 1, true, false},
	} {
		j := events.ScheduledJob{PauseAfterFailures: c.after, Generation: c.generation, Suspended: c.suspended,
			Status: v1alpha1.ScheduledJobStatus{ConsecutiveFailures: c.failed, ObservedGeneration: c.observed}}
		if j.Paused() != c.paused || j.Stopped() != (c.paused || c.suspended) {
			t.Errorf("%s: paused %v, stopped %v", c.name, j.Paused(), j.Stopped())
		}
	}
}

// TestWhenAScheduledJobExpires: only one that runs once does, if it has finished, and its status is about the current spec.
func TestWhenAScheduledJobExpires(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*events.ScheduledJob)
		want   time.Time
	}{
		{"it has finished", func(*events.ScheduledJob) {}, at(30)},
		{"at once", func(j *events.ScheduledJob) { j.TTLSecondsAfterFinished = new(int32(0)) }, at(20)},
		{"without a TTL", func(j *events.ScheduledJob) { j.TTLSecondsAfterFinished = nil }, time.Time{}},
		{"it has a schedule", func(j *events.ScheduledJob) { j.RunAt = time.Time{} }, time.Time{}},
		{"it has not finished", func(j *events.ScheduledJob) { j.Status.Conditions[0].Status = metav1.ConditionFalse }, time.Time{}},
		{"it has no conditions", func(j *events.ScheduledJob) { j.Status.Conditions = nil }, time.Time{}},
		{"it was edited since", func(j *events.ScheduledJob) { j.Generation = 2 }, time.Time{}},
	} {
		j := events.ScheduledJob{RunAt: at(5), Generation: 1, TTLSecondsAfterFinished: new(int32(10)), Status: v1alpha1.ScheduledJobStatus{ObservedGeneration: 1,
			Conditions: []metav1.Condition{{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at(20)}}}}}
		c.change(&j)
		if got := j.Expires(); !got.Equal(c.want) || got.IsZero() != c.want.IsZero() {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
