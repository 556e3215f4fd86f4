package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// The Pod that takes over an index continues both counts of its failures: those that count, and those that the policy ignores.
func TestHandOnCountsTheFailureOnce(t *testing.T) {
	ignore := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}}}}
	for _, c := range []struct {
		name           string
		code           int32
		failed, passed int32
	}{
		{"a failure that counts", 1, 3, 5},
		{"an ignored one", 42, 2, 6},
	} {
		last := events.Pod{Phase: events.Failed, IndexFailures: 2, IndexIgnoredFailures: 5, Exits: []events.Exit{{Container: "main", Code: c.code}}}
		next := handOn(events.Job{PodFailurePolicy: ignore}, last, events.Pod{Name: "next"})
		if next.Name != "next" || next.IndexFailures != c.failed || next.IndexIgnoredFailures != c.passed {
			t.Errorf("%s: %+v", c.name, next)
		}
	}
}

// Of several failed Pods of an index, the one with the most failures before it is the last; the clock decides between equals.
func TestTheLastFailedPodOfAnIndex(t *testing.T) {
	pod := func(failed, ignored int32, at time.Duration) events.Pod {
		return events.Pod{IndexFailures: failed, IndexIgnoredFailures: ignored, Finished: noon.Add(at)}
	}
	for _, c := range []struct {
		name string
		p, q events.Pod
		want bool
	}{
		{"one failure more", pod(2, 0, 2), pod(1, 0, 1), true},
		{"one failure less", pod(1, 0, 2), pod(2, 0, 1), false},
		{"an ignored one more", pod(1, 2, 2), pod(2, 0, 1), true},
		{"an ignored one less", pod(1, 0, 2), pod(0, 2, 1), false},
		{"as many, later", pod(1, 1, 2), pod(2, 0, 1), true},
		{"as many, at the same time", pod(1, 1, 1), pod(2, 0, 1), true},
		{"as many, earlier", pod(1, 1, 0), pod(2, 0, 1), false},
		{"more, but earlier", pod(3, 0, 0), pod(1, 0, 1), false},
	} {
		if got := later(c.p, c.q); got != c.want {
			t.Errorf("%s: later is %v", c.name, got)
		}
	}
}

// An index waits longer with each failure before, ignored or not.
func TestAnIndexWaitsForAllOfItsFailures(t *testing.T) {
	s := State{limits: DefaultLimits()}
	for _, c := range []struct {
		failed, ignored int32
		want            time.Duration
	}{{0, 0, 10 * time.Second}, {1, 0, 20 * time.Second}, {0, 1, 20 * time.Second}, {1, 1, 40 * time.Second}, {2, 1, 80 * time.Second}} {
		got := indexRests(s, events.Pod{Finished: noon, IndexFailures: c.failed, IndexIgnoredFailures: c.ignored}).Sub(noon)
		if got != c.want {
			t.Errorf("after %d failures and %d ignored ones it waits %s, want %s", c.failed, c.ignored, got, c.want)
		}
	}
}

// A Pod has failed, or counts as failed while it is deleted, unless only failed ones count or it has succeeded.
func TestFailing(t *testing.T) {
	for _, c := range []struct {
		name       string
		phase      events.PodPhase
		deleting   bool
		failedOnly bool
		want       bool
	}{
		{"failed", events.Failed, false, false, true},
		{"failed, where only that counts", events.Failed, false, true, true},
		{"deleted", events.Running, true, false, true},
		{"deleted, where only failed ones count", events.Running, true, true, false},
		{"deleted after it has succeeded", events.Succeeded, true, false, false},
		{"it runs", events.Running, false, false, false},
		{"it runs, where only failed ones count", events.Running, false, true, false},
		{"it has succeeded", events.Succeeded, false, true, false},
	} {
		if got := failing(events.Job{ReplaceFailedOnly: c.failedOnly}, events.Pod{Phase: c.phase, Deleting: c.deleting}); got != c.want {
			t.Errorf("%s: failing is %v", c.name, got)
		}
	}
}
