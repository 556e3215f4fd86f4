package job

import (
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Progress is written once a second, and at once when a quarter of the Pods that run at a time have ended; of a large Indexed Job less often.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		name        string
		parallelism int32
		indexed     bool
		interval    time.Duration
		many        int
	}{
		{"none", 0, false, time.Second, 1},
		{"one", 1, false, time.Second, 1},
		{"four", 4, true, time.Second, 1},
		{"nine", 9, true, time.Second, 3},
		{"just not many", 499, true, time.Second, 125},
		{"many", 500, true, 2 * time.Second, 250},
		{"a thousand", 1000, true, 3 * time.Second, 500},
		{"more than a status adds", 100_000, true, 3 * time.Second, 500},
		{"many, not Indexed", 1000, false, time.Second, 250},
		{"the most there can be, not Indexed", math.MaxInt32, false, time.Second, math.MaxInt32/4 + 1},
	} {
		s := State{Job: events.Job{Parallelism: c.parallelism, Indexed: c.indexed}, limits: DefaultLimits()}
		if interval, many := s.pace(); interval != c.interval || many != c.many {
			t.Errorf("%s: %v and %d, want %v and %d", c.name, interval, many, c.interval, c.many)
		}
	}
}

// Whether mere progress is written now, or at the end of the interval.
func TestProgressWaitsForItsInterval(t *testing.T) {
	start, written := time.Unix(1000, 0), time.Unix(2000, 0)
	for _, c := range []struct {
		name        string
		parallelism int32
		indexed     bool
		ended       int
		after       time.Duration // the last write
		due         time.Duration // after the last write; 0: now
	}{
		{"little progress", 100, true, 24, 500 * time.Millisecond, time.Second},
		{"a quarter has ended", 100, true, 25, 500 * time.Millisecond, 0},
		{"a second is over", 100, true, 1, time.Second, 0},
		{"many run, and a second is over", 500, true, 249, time.Second, 2 * time.Second},
		{"many run, and two seconds are over", 500, true, 1, 2 * time.Second, 0},
		{"many run, and half of them have ended", 500, true, 250, time.Second, 0},
		{"a thousand run, and two seconds are over", 1000, true, 499, 2 * time.Second, 3 * time.Second},
		{"many run, not Indexed", 500, false, 1, time.Second, 0},
	} {
		j := events.Job{Name: "pi", Parallelism: c.parallelism, Indexed: c.indexed}
		j.Status.StartTime = &metav1.Time{Time: start}
		s := State{Job: j, limits: DefaultLimits()}
		s.Written = written
		want, at := j.Status, effect.Wake{}
		want.Succeeded = int32(c.ended)
		_, due := writeStatus(s, want, count{succeeded: make([]events.Pod, c.ended)}, written.Add(c.after), &at)
		if due != (c.due == 0) {
			t.Errorf("%s: written now: %v", c.name, due)
		}
		wake := effect.Wake{}
		if !due {
			wake.By(written.Add(c.due))
		}
		if at != wake {
			t.Errorf("%s: looks again %v, want %v after the last write", c.name, at, c.due)
		}
	}
}

// A failed Pod that waits for its successor is no progress.
func TestUnreported(t *testing.T) {
	c := count{succeeded: make([]events.Pod, 2), failed: []events.Pod{{UID: "waits"}, {UID: "done"}}}
	c.indexes.carrier = map[types.UID]bool{"waits": true}
	if got := unreported(c); got != 3 {
		t.Errorf("%d, want 2 that succeeded and one that failed", got)
	}
}

// The Pods that a status lists are those whose UIDs it has, and the successes of the indexes that it has.
func TestWritten(t *testing.T) {
	st := batchv1.JobStatus{CompletedIndexes: "1", UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Failed: []types.UID{"listed"}}}
	for _, c := range []struct {
		name    string
		indexed bool
		pod     events.Pod
		want    bool
	}{
		{"listed", false, events.Pod{UID: "listed", Phase: events.Failed}, true},
		{"listed, of an Indexed Job", true, events.Pod{UID: "listed", Phase: events.Failed, Index: 1}, true},
		{"not listed", false, events.Pod{UID: "other", Phase: events.Succeeded, Index: 1}, false},
		{"a success of a completed index", true, events.Pod{UID: "other", Phase: events.Succeeded, Index: 1}, true},
		{"a success of another index", true, events.Pod{UID: "other", Phase: events.Succeeded, Index: 2}, false},
		{"a failure of a completed index", true, events.Pod{UID: "other", Phase: events.Failed, Index: 1}, false},
	} {
		if got := written([]events.Pod{c.pod}, st, events.Job{Indexed: c.indexed}); (len(got) == 1) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A Job is complete when it has its successes and no Pod is active or about to be created.
func TestComplete(t *testing.T) {
	two := int32(2)
	for _, c := range []struct {
		name             string
		completions      *int32
		active, intended int32
		done             int
		want             bool
	}{
		{"all successes", &two, 0, 0, 2, true},
		{"more than all", &two, 0, 0, 3, true},
		{"one is missing", &two, 0, 0, 1, false},
		{"one is active", &two, 1, 0, 2, false},
		{"one is intended", &two, 0, 1, 2, false},
		{"one is active and one intended", &two, 1, 1, 2, false},
		{"a work queue with a success", nil, 0, 0, 1, true},
		{"a work queue without", nil, 0, 0, 0, false},
		{"a work queue with a success, and a Pod that runs", nil, 1, 0, 1, false},
	} {
		if got := complete(events.Job{Completions: c.completions}, count{active: c.active, intended: c.intended, done: c.done}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Each condition that has newly become True is reported, and one whose reason has changed.
func TestReportsOfConditions(t *testing.T) {
	is := func(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: "m"}
	}
	two := int32(2)
	for _, c := range []struct {
		name      string
		old, want []batchv1.JobCondition
		succeeded int32
		reasons   []string
	}{
		{"newly True", nil, []batchv1.JobCondition{is(batchv1.JobFailed, "True", "DeadlineExceeded")}, 0, []string{"DeadlineExceeded"}},
		{"True as before", []batchv1.JobCondition{is(batchv1.JobFailed, "True", "R")}, []batchv1.JobCondition{is(batchv1.JobFailed, "True", "R")}, 0, nil},
		{"True for another reason", []batchv1.JobCondition{is(batchv1.JobFailed, "True", "Q")}, []batchv1.JobCondition{is(batchv1.JobFailed, "True", "R")}, 0, []string{"R"}},
		{"True again", []batchv1.JobCondition{is(batchv1.JobFailed, "False", "R")}, []batchv1.JobCondition{is(batchv1.JobFailed, "True", "R")}, 0, []string{"R"}},
		{"not True", nil, []batchv1.JobCondition{is(batchv1.JobFailed, "False", "R")}, 0, nil},
		{"as many successes as wanted", nil, []batchv1.JobCondition{is(batchv1.JobComplete, "True", "R")}, 2, []string{"Completed"}},
		{"one more", nil, []batchv1.JobCondition{is(batchv1.JobComplete, "True", "R")}, 3, []string{"TooManySucceededPods", "Completed"}},
	} {
		got := reports(events.Job{Completions: &two, Status: batchv1.JobStatus{Conditions: c.old}}, batchv1.JobStatus{Conditions: c.want, Succeeded: c.succeeded})
		if len(got) != len(c.reasons) {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		for i, reason := range c.reasons {
			if got[i].Reason != reason {
				t.Errorf("%s: %v, want %v", c.name, got, c.reasons)
			}
		}
	}
}
