package events_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// TestUntouched: each trace of a start, of a Pod or of an edit means that Pods must be listed.
func TestUntouched(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*events.Job)
		want   bool
	}{
		{"as it was created", func(*events.Job) {}, true},
		{"with empty lists of uncounted Pods", func(j *events.Job) { j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{} }, true},
		{"with no terminating Pods", func(j *events.Job) { j.Status.Terminating = new(int32(0)) }, true},
		{"edited", func(j *events.Job) { j.Generation = 2 }, false},
		{"with a selector of its user's own", func(j *events.Job) { j.Selector = &metav1.LabelSelector{} }, false},
		{"started", func(j *events.Job) { j.Status.StartTime = &metav1.Time{Time: at(1)} }, false},
		{"with a condition", func(j *events.Job) { j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended}} }, false},
		{"with an active Pod", func(j *events.Job) { j.Status.Active = 1 }, false},
		{"with a success", func(j *events.Job) { j.Status.Succeeded = 1 }, false},
		{"with a failure", func(j *events.Job) { j.Status.Failed = 1 }, false},
		{"with a completed index", func(j *events.Job) { j.Status.CompletedIndexes = "0" }, false},
		{"with a terminating Pod", func(j *events.Job) { j.Status.Terminating = new(int32(1)) }, false},
		{"with an uncounted success", func(j *events.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a"}}
		}, false},
		{"with an uncounted failure", func(j *events.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"a"}}
		}, false},
		{"with one of each", func(j *events.Job) {
			j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{"a"}, Failed: []types.UID{"b"}}
		}, false},
	} {
		j := events.Job{Generation: 1}
		if c.change(&j); j.Untouched() != c.want {
			t.Errorf("%s: %v", c.name, j.Untouched())
		}
	}
}

// TestWhenAJobExpires: a TTL counts from the final condition, which only a status of True is.
func TestWhenAJobExpires(t *testing.T) {
	final := func(kind batchv1.JobConditionType, status string) []batchv1.JobCondition {
		return []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: "True", LastTransitionTime: metav1.Time{Time: at(1)}},
			{Type: kind, Status: "Unknown"}, {Type: kind, Status: "True", LastTransitionTime: metav1.Time{Time: at(20)}}}[:map[string]int{"True": 3, "Unknown": 2}[status]]
	}
	for _, c := range []struct {
		name          string
		ttl           *int32
		conditions    []batchv1.JobCondition
		ends, expires time.Time
	}{
		{"Complete", new(int32(10)), final(batchv1.JobComplete, "True"), at(20), at(30)},
		{"Failed", new(int32(0)), final(batchv1.JobFailed, "True"), at(20), at(20)},
		{"without a TTL", nil, final(batchv1.JobComplete, "True"), at(20), time.Time{}},
		{"not yet Complete", new(int32(10)), final(batchv1.JobComplete, "Unknown"), time.Time{}, time.Time{}},
		{"it runs", new(int32(10)), nil, time.Time{}, time.Time{}},
	} {
		j := events.Job{TTLSecondsAfterFinished: c.ttl, Status: batchv1.JobStatus{Conditions: c.conditions}}
		if ends, expires := j.FinishedAt(), j.Expires(); !ends.Equal(c.ends) || !expires.Equal(c.expires) || j.Finished() == c.ends.IsZero() {
			t.Errorf("%s: it has finished %v, at %v, and expires at %v", c.name, j.Finished(), ends, expires)
		}
		if c.conditions != nil && (!j.HasCondition(batchv1.JobSuspended) || j.HasCondition(batchv1.JobFailureTarget)) {
			t.Errorf("%s: which conditions it has", c.name)
		}
	}
}

func TestBackoffRecordsAreEqual(t *testing.T) {
	one := events.Backoff{Failures: 2, Last: at(1)}
	for _, c := range []struct {
		name  string
		other events.Backoff
		want  bool
	}{
		{"the same moment elsewhere", events.Backoff{Failures: 2, Last: at(1).In(time.FixedZone("", 3600))}, true},
		{"another number", events.Backoff{Failures: 1, Last: at(1)}, false},
		{"another moment", events.Backoff{Failures: 2, Last: at(2)}, false},
	} {
		if one.Equal(c.other) != c.want {
			t.Errorf("%s: %v", c.name, one.Equal(c.other))
		}
	}
}
