package backoff_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func refuse(w *backoff.Waits, e effect.Effect, at time.Time) {
	w.Refuse(events.EffectRefused{Effect: e.Kind(), Name: effect.Subject(e), Reason: "Forbidden", Message: "no", At: at})
}

// TestWhatOneRefusalTellsOfOthers: a quota refuses the next Pod, too; a webhook that refuses one Pod may accept the next one.
func TestWhatOneRefusalTellsOfOthers(t *testing.T) {
	for _, c := range []struct {
		refused, next effect.Effect
		rests         bool
	}{
		{effect.CreatePod{Name: "a"}, effect.CreatePod{Name: "b"}, true},
		{effect.WriteJobStatus{Version: 1}, effect.WriteJobStatus{Version: 2}, true},
		{effect.CreateJob{Name: "a"}, effect.CreateJob{Name: "b"}, true},
		{effect.FindPod{Name: "a"}, effect.FindPod{Name: "b"}, true},
		{effect.RemoveFinalizer{Name: "a"}, effect.RemoveFinalizer{Name: "b"}, false},
		{effect.AddFinalizer{Name: "a"}, effect.AddFinalizer{Name: "b"}, false},
		{effect.AdoptPod{Name: "a"}, effect.AdoptPod{Name: "b"}, false},
		{effect.ReleasePod{Name: "a"}, effect.ReleasePod{Name: "b"}, false},
		{effect.DeletePod{Name: "a"}, effect.DeletePod{Name: "b"}, false},
		{effect.DeleteRun{Name: "a"}, effect.DeleteRun{Name: "b"}, false},
		{effect.DeletePod{Name: "a"}, effect.RemoveFinalizer{Name: "a"}, false},
	} {
		t.Run(c.refused.String()+" then "+c.next.String(), func(t *testing.T) {
			var w backoff.Waits
			refuse(&w, c.refused, noon)
			if !w.Blocked(c.refused, noon) || w.Blocked(c.refused, noon.Add(time.Second)) {
				t.Error("what was refused does not rest for a second")
			}
			if w.Blocked(c.next, noon) != c.rests {
				t.Errorf("the next one rests: %v", !c.rests)
			}
		})
	}
}

// TestTooManyObjectsAreOneKind: the state stays small, and a webhook that refuses everything is called with increasing delays.
func TestTooManyObjectsAreOneKind(t *testing.T) {
	var w backoff.Waits
	name := func(i int) effect.Effect { return effect.RemoveFinalizer{Name: fmt.Sprint("pi-", i)} }
	for i := range 3 * backoff.ObjectsMax {
		refuse(&w, name(i), noon)
	}
	if len(w) != backoff.ObjectsMax+1 {
		t.Errorf("%d waits, want one for each of %d and one for the kind", len(w), backoff.ObjectsMax)
	}
	if next := name(-1); !w.Blocked(next, noon) {
		t.Error("so many were refused, and the next one is asked for at once")
	}
	w.Accept(effect.KindRemoveFinalizer, "pi-0")
	if w.Blocked(name(-1), noon) || !w.Blocked(name(1), noon) {
		t.Error("one is accepted: others may be tried, but for those that were refused themselves")
	}
}

// TestWhatWasRefusedTogetherIsTriedAgainTogether: the answers come a moment apart, and each would need a turn.
func TestWhatWasRefusedTogetherIsTriedAgainTogether(t *testing.T) {
	var w backoff.Waits
	at := noon.Add(time.Millisecond)
	for i := range 50 {
		refuse(&w, effect.RemoveFinalizer{Name: fmt.Sprint("pi-", i)}, at.Add(time.Duration(i)*time.Millisecond))
	}
	end := w.End(at)
	for i := range 50 {
		if w.Blocked(effect.RemoveFinalizer{Name: fmt.Sprint("pi-", i)}, end) {
			t.Fatalf("when the first may be tried again, at %v, pi-%d may not", end, i)
		}
	}
	if rest := end.Sub(at); rest < 800*time.Millisecond || rest > time.Second {
		t.Errorf("they rest for %v, want about a second", rest)
	}
}

// TestUnwantedObjectsAreForgotten: objects for which no effect is wanted are dropped, and a kind is not.
func TestUnwantedObjectsAreForgotten(t *testing.T) {
	var w backoff.Waits
	a, b := effect.RemoveFinalizer{Name: "a"}, effect.RemoveFinalizer{Name: "b"}
	for _, e := range []effect.Effect{a, b, effect.CreatePod{}} {
		refuse(&w, e, noon)
	}
	w.Forget([]effect.Effect{b})
	if w.Blocked(a, noon) || !w.Blocked(b, noon) || !w.Blocked(effect.CreatePod{}, noon) || len(w) != 2 {
		t.Errorf("left is %v", w)
	}
}
