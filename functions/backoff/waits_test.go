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

// TestRefusalsInARow: each makes the next try wait twice as long, until one is accepted. Several at once are one attempt, and one
// that is delivered again is no news, also after the effect was accepted.
func TestRefusalsInARow(t *testing.T) {
	var w backoff.Waits
	now := noon
	refused := func(after time.Duration, news bool, rest time.Duration) {
		t.Helper()
		now = now.Add(after)
		e := events.EffectRefused{Effect: effect.KindCreatePod, Name: "pi-0", Reason: "Forbidden", Message: "no", At: now}
		if w.Refuse(e) != news {
			t.Errorf("%v after noon: news %v", now.Sub(noon), !news)
		}
		if got := w.End(now); rest == 0 && !got.IsZero() || rest > 0 && got.Sub(now) != rest {
			t.Errorf("%v after noon: it rests until %v, want %v longer", now.Sub(noon), got, rest)
		}
	}
	refused(0, true, time.Second)
	refused(0, false, time.Second)                              // the same, delivered again
	refused(300*time.Millisecond, true, 700*time.Millisecond)   // of the same attempt
	refused(700*time.Millisecond, true, 2*time.Second)          // at the end of its rest it was tried again
	refused(-500*time.Millisecond, true, 2500*time.Millisecond) // by a worker whose clock is behind
	now = noon.Add(3 * time.Second)
	refused(0, true, 4*time.Second)
	w.Accept(effect.KindCreatePod, "pi-0")
	if w.Blocked(effect.CreatePod{Name: "pi-0"}, now) {
		t.Error("it was accepted, and rests")
	}
	refused(0, false, 0) // delivered again
	refused(time.Second, true, time.Second)
	if got := w[effect.KindCreatePod]; got.Count != 1 || got.Reason != "Forbidden" || got.Message != "no" {
		t.Errorf("got %+v", got)
	}
}

// TestTheFirstOfSeveralDelaysEnds: that is when the next plan is due. A delay that is over counts no more.
func TestTheFirstOfSeveralDelaysEnds(t *testing.T) {
	w := backoff.Waits{"over": {Until: noon}, "later": {Until: noon.Add(2 * time.Second)}, "first": {Until: noon.Add(time.Second)}, "last": {Until: noon.Add(3 * time.Second)}}
	for _, c := range []struct{ at, end time.Duration }{{0, time.Second}, {time.Second, 2 * time.Second}, {2 * time.Second, 3 * time.Second}} {
		if got := w.End(noon.Add(c.at)); !got.Equal(noon.Add(c.end)) {
			t.Errorf("%v after noon the first ends at %v", c.at, got)
		}
	}
	if got := w.End(noon.Add(3 * time.Second)); !got.IsZero() {
		t.Errorf("all are over, and one ends at %v", got)
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
