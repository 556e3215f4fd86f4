package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// TestWhatJoinsARunningTurn: observations do; nothing that only a newer state may know, nothing beside an inventory, and nothing once another
// worker has the key, too.
func TestWhatJoinsARunningTurn(t *testing.T) {
	for _, c := range []struct {
		name      string
		did       effect.Effect
		conflict  bool
		fact      events.Event
		wantJoins bool
	}{
		{name: "an observation", did: effect.CreatePod{}, fact: events.PodObserved{}, wantJoins: true},
		{name: "a timer", did: effect.CreatePod{}, fact: events.TimerFired{}},
		{name: "beside an inventory", did: effect.TakeInventory{}, fact: events.PodObserved{}},
		{name: "after a conflict", did: effect.CreatePod{}, conflict: true, fact: events.PodObserved{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, b, folded := context.Background(), &bench{}, []events.Event(nil)
			turn := engine.NewTurn(fn.Register(fn.Function[int]{Name: "count", Version: 1,
				Observe: func(s int, e events.Event) int { folded = append(folded, e); return s + 1 },
				Plan:    func(s int, _ time.Time) (int, []effect.Effect) { return s, []effect.Effect{c.did} },
			}), b, key, events.JobObserved{})
			if c.conflict {
				b.conflicts = 1
				if err := errors.Join(turn.Load(ctx), turn.Decide(time.Now()), turn.Commit(ctx)); !errors.Is(err, engine.ErrConflict) {
					t.Fatalf("no conflict: %v", err)
				}
			}
			if err := errors.Join(turn.Load(ctx), turn.Decide(time.Now()), turn.Commit(ctx)); err != nil {
				t.Fatal(err)
			}
			if joins := turn.Fold(c.fact); joins != c.wantJoins || joins != turn.Again() {
				t.Errorf("it joins: %v", joins)
			}
			folded = nil
			if err := turn.Decide(time.Now()); err != nil || (len(folded) == 1) != c.wantJoins {
				t.Errorf("folded %v, %v", folded, err)
			}
		})
	}
}
