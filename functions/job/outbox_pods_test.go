package job

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/outbox"
	"github.com/jobstream/jobstream/functions/pod"
)

// Transcripts announced_pods* show which ends of Pods are announced, and when. These tests show how many a state holds, and for
// how long.

// telling are limits with which the ends of Pods are announced.
func telling() Limits {
	l := DefaultLimits()
	l.AnnouncePods = true
	return l
}

// endedPods returns the state of a Job that has started and announced it, and whose first n Pods have just ended, are listed and
// still held. With it come the observations that they are no longer held.
func endedPods(t *testing.T, f fn.Function[State], n int) (State, []events.Event) {
	t.Helper()
	j := events.Job{Namespace: "default", Name: "pi", UID: "job-1", Version: 1, Parallelism: int32(n), Completions: new(int32(2 * n)), BackoffLimit: 6}
	j.Status = batchv1.JobStatus{StartTime: &metav1.Time{Time: noon}, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	list := events.JobListed{JobsVersion: 1, Version: 1, Job: &j}
	var unheld []events.Event
	for i := range n {
		p := events.Pod{Name: pod.Name(j.Name, j.UID, i, events.NoIndex), UID: types.UID(fmt.Sprintf("0b7e5d0a-5c1c-4d0e-8f6f-%012d", i)), Version: 1, Owner: j.Name,
			Serial: i, Index: events.NoIndex, Phase: events.Succeeded, Held: true, Created: noon, Finished: noon,
			End: &events.PodEnd{Node: "a-node-with-a-name", Start: noon, Container: &events.ContainerEnd{Name: "main", Reason: "Completed"}}}
		list.Pods = append(list.Pods, p)
		j.Status.UncountedTerminatedPods.Succeeded = append(j.Status.UncountedTerminatedPods.Succeeded, p.UID)
		p.Version, p.Held = 2, false
		unheld = append(unheld, events.PodObserved{Pod: p})
	}
	s, effects := f.Decide(State{}, []events.Event{events.TimerFired{}}, noon)
	list.ID = effects[0].(effect.TakeInventory).ID
	s, effects = f.Decide(s, []events.Event{list}, noon)
	s, _ = f.Decide(s, confirm(effects), noon)
	return s, unheld
}

// confirm returns the answers of a bus that confirms everything.
func confirm(effects []effect.Effect) (facts []events.Event) {
	for _, e := range effects {
		switch e := e.(type) {
		case effect.Announce:
			facts = append(facts, events.Announced{ID: events.PublicID(e.Event)})
		case effect.ReportDropped:
			facts = append(facts, events.Announced{ID: e.ID})
		}
	}
	return facts
}

func podsIn(effects []effect.Effect) (uids []types.UID, dropped int) {
	for _, e := range effects {
		switch e := e.(type) {
		case effect.Announce:
			if p, ok := e.Event.(events.PodFinished); ok {
				uids = append(uids, p.Pod.UID)
			}
		case effect.ReportDropped:
			dropped += e.Count
		}
	}
	return uids, dropped
}

// TestEndsOfPodsAreForgotten: each is announced once, and nothing is left of them when they are confirmed, whatever is observed
// again.
func TestEndsOfPodsAreForgotten(t *testing.T) {
	f := New(telling())
	const n = 600
	s, unheld := endedPods(t, f, n)
	var told []types.UID
	facts := unheld
	for round := range 10 {
		var effects []effect.Effect
		s, effects = f.Decide(s, facts, noon)
		uids, dropped := podsIn(effects)
		if dropped > 0 {
			t.Fatalf("round %d: %d dropped", round, dropped)
		}
		told = append(told, uids...)
		facts = confirm(effects)
		if len(uids) == 0 {
			break
		}
	}
	if slices.Sort(told); len(told) != n || len(slices.Compact(told)) != n {
		t.Errorf("%d of %d Pods are told of", len(told), n)
	}
	s, effects := f.Decide(s, unheld, noon)
	if again, _ := podsIn(effects); len(again)+len(s.Outbox.Pods) > 0 {
		t.Errorf("observed again, %d are told of again, and %d remembered", len(again), len(s.Outbox.Pods))
	}
}

// TestEndOfAPodThatIsReplacedIsAnnounced: before its removal is observed, a worker that slept has created a Pod of its name anew.
func TestEndOfAPodThatIsReplacedIsAnnounced(t *testing.T) {
	f := New(telling())
	s, unheld := endedPods(t, f, 1)
	old := unheld[0].(events.PodObserved).Pod
	anew := old
	anew.UID, anew.Version, anew.Phase, anew.Held, anew.Finished, anew.End = "anew", old.Version+1, events.Running, true, time.Time{}, nil
	_, effects := f.Decide(s, []events.Event{events.PodObserved{Pod: anew}}, noon)
	if told, _ := podsIn(effects); !slices.Equal(told, []types.UID{old.UID}) {
		t.Errorf("told of %v: %v", told, effects)
	}
}

// TestDeadStreamBoundsAJob: while the bus confirms nothing, no more wait than the limit, the state stays small, and the operator
// is told once of what was dropped. Then those that waited are announced, each once.
func TestDeadStreamBoundsAJob(t *testing.T) {
	f := New(telling())
	const more = 300
	s, unheld := endedPods(t, f, outbox.MaxPods+more)
	s, effects := f.Decide(s, unheld, noon)
	if _, dropped := podsIn(effects); dropped != more || len(s.Outbox.Pods) != outbox.MaxPods {
		t.Fatalf("%d are dropped, %d wait", dropped, len(s.Outbox.Pods))
	}
	encoded, err := fn.Register(fn.Function[State]{Version: 1, Observe: f.Observe, Plan: func(State, time.Time) (State, []effect.Effect) { return s, nil }}).Decide(nil, nil, noon)
	if err != nil || len(encoded.State) > 600_000 {
		t.Errorf("the state has %d bytes, %v", len(encoded.State), err)
	}
	if f.Rests(s) {
		t.Error("it rests with announcements due")
	}
	s, again := f.Decide(s, nil, noon)
	if _, dropped := podsIn(again); dropped != more {
		t.Errorf("unconfirmed, %d are told of as dropped", dropped)
	}
	told := 0
	for range 20 {
		var next []effect.Effect
		s, next = f.Decide(s, confirm(again), noon)
		uids, dropped := podsIn(again)
		if told += len(uids); dropped > 0 && dropped != more {
			t.Errorf("%d are told of as dropped", dropped)
		}
		again = next
	}
	if _, dropped := podsIn(again); told != outbox.MaxPods || dropped != 0 {
		t.Errorf("%d are told of in the end, and %d once more as dropped", told, dropped)
	}
}

// TestByDefaultNoEndIsAnnounced, and the state has nothing that only subscribers want.
func TestByDefaultNoEndIsAnnounced(t *testing.T) {
	f := New(DefaultLimits())
	s, unheld := endedPods(t, f, 3)
	for _, r := range s.Pods {
		if r.Pod.End != nil || r.Result != "" {
			t.Errorf("remembers %+v", r)
		}
	}
	if s, effects := f.Decide(s, unheld, noon); len(s.Outbox.Pods) > 0 || len(s.Pods) > 3 {
		t.Errorf("%v", effects)
	} else if uids, _ := podsIn(effects); len(uids) > 0 {
		t.Errorf("tells of %v", uids)
	}
}

// TestConfirmationsOfPodsLeaveNoTrace in a state without these Pods: there may be 100,000, and starts must not make room for
// them.
func TestConfirmationsOfPodsLeaveNoTrace(t *testing.T) {
	f := New(telling())
	s, _ := endedPods(t, f, 1)
	before := len(s.Outbox.Notices)
	for i := range 3 * outbox.MaxNotices {
		e := events.PodFinish(events.Job{UID: "job-1"}, events.Pod{UID: types.UID(fmt.Sprint("old-", i))}, events.PodFailed)
		s = f.Observe(s, events.Announced{ID: events.PublicID(e)})
	}
	if s = f.Observe(s, events.Announced{ID: outbox.DroppedPrefix + "7"}); len(s.Outbox.Notices) != before || s.Outbox.Reported != 0 {
		t.Errorf("%d notices instead of %d, %d reported", len(s.Outbox.Notices), before, s.Outbox.Reported)
	}
}

// TestAHealthyBusDropsNothing: thousands of finalizers may be removed as fast as the API server can. Those of a removed node pool need
// not be listed in a status if the podFailurePolicy ignores them. All of them are announced.
func TestAHealthyBusDropsNothing(t *testing.T) {
	f := New(telling())
	const pods, round = 12_000, 1_000 // in the time that one decision is good for
	s, unheld := endedPods(t, f, pods)
	var facts []events.Event
	told := 0
	for len(unheld)+len(facts) > 0 {
		now := min(round, len(unheld))
		facts, unheld = append(facts, unheld[:now]...), unheld[now:]
		var effects []effect.Effect
		s, effects = f.Decide(s, facts, noon)
		uids, dropped := podsIn(effects)
		if dropped > 0 {
			t.Fatalf("%d dropped, %d told of before", dropped, told)
		}
		told += len(uids)
		facts = confirm(effects)
	}
	if told != pods {
		t.Errorf("%d of %d Pods are told of", told, pods)
	}
}
