package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
)

// After a refusal each Pod that is created allows twice as many, until that is more than one plan creates.
func TestAllowMore(t *testing.T) {
	const most = 500
	for _, c := range []struct{ before, after int }{{0, 0}, {1, 2}, {2, 4}, {250, 500}, {251, 0}, {500, 0}} {
		p := Pacing{Allowed: c.before, Waits: backoff.Waits{effect.KindCreatePod: {Count: 3, Until: noon, Reason: "Forbidden"}}}
		p.allowMore(most)
		if p.Allowed != c.after {
			t.Errorf("from %d to %d, want %d", c.before, p.Allowed, c.after)
		}
		if w := p.Waits[effect.KindCreatePod]; c.before > 0 && (w.Count > 0 || !w.Until.IsZero()) {
			t.Errorf("from %d: the next refusal is not the first of a row: %+v", c.before, w)
		}
	}
	p := Pacing{Allowed: 1}
	if p.accept(effect.KindDeletePod, "a"); p.Allowed != 1 {
		t.Error("a deletion that is accepted says nothing about creations")
	}
	if p.accept(effect.KindCreatePod, ""); p.Allowed != 0 {
		t.Errorf("allowed are %d Pods, after one was accepted", p.Allowed)
	}
}

// A success forgets the failures before it. The record of the success is kept only where an ignored failure of before could be taken for
// a new one; and no success delays anything, even if another clock has put it into the future.
func TestTheBackoffRecordOfASuccess(t *testing.T) {
	won := events.Pod{UID: "won", Phase: events.Succeeded, Finished: noon}
	c := count{succeeded: []events.Pod{won}}
	st := batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: []types.UID{won.UID}}}
	before := events.Backoff{Failures: 2, Last: noon.Add(-time.Minute)}
	if got := record(events.Job{Backoff: before}, c, st); !got.Equal(events.Backoff{}) {
		t.Errorf("without a policy: %+v", got)
	}
	if got := record(events.Job{Backoff: before, PodFailurePolicy: &batchv1.PodFailurePolicy{}}, c, st); got.Failures != 0 || !got.Last.Equal(noon) {
		t.Errorf("with a policy: %+v", got)
	}
	if got := record(events.Job{Backoff: before, BackoffLimitPerIndex: new(int32(1))}, c, st); !got.Equal(events.Backoff{}) {
		t.Errorf("with a limit per index: %+v", got)
	}
	s := State{Job: events.Job{Backoff: events.Backoff{Last: noon.Add(time.Hour)}, PodFailurePolicy: &batchv1.PodFailurePolicy{}}, limits: DefaultLimits()}
	if end := backoffEnds(s, count{}, noon); !end.IsZero() {
		t.Errorf("a success delays until %s", end)
	}
}
