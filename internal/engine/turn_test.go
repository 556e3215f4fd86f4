package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// TestAForgottenStateFoldsAllFactsAgain: a fact is in the state after the first round, and acknowledged after the last. If
// the state is deleted in between, the fact must not be lost with it.
func TestAForgottenStateFoldsAllFactsAgain(t *testing.T) {
	ctx, b := context.Background(), &bench{}
	turn := engine.NewTurn(counter(), b, key, fact{b, "a"}.Event())
	round := func() error {
		t.Helper()
		if err := turn.Decide(time.Now()); err != nil {
			t.Fatal(err)
		}
		return turn.Commit(ctx)
	}
	if err := errors.Join(turn.Load(ctx), round()); err != nil {
		t.Fatal(err)
	}
	turn.Answer(engine.Answer{Facts: []events.Event{fact{b, "b"}.Event()}})
	if err := b.Forget(ctx, key); err != nil {
		t.Fatal(err)
	}
	if err := round(); !errors.Is(err, engine.ErrConflict) {
		t.Fatalf("committed over a memory that was forgotten: %v", err)
	}
	if err := errors.Join(turn.Load(ctx), round()); err != nil {
		t.Fatal(err)
	}
	want := []effect.Effect{effect.RemoveFinalizer{Name: "a"}, effect.RemoveFinalizer{Name: "b"}}
	if got := turn.Effects(); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestAnInvalidStateIsForgotten: a state that breaks a law of its function is treated like a lost one, and Forgot has the reason
// for the log.
func TestAnInvalidStateIsForgotten(t *testing.T) {
	type state struct{ Folded, Broken bool }
	f := fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, _ events.Event) state { return state{Folded: true, Broken: !s.Folded} },
		Plan:    func(s state, _ time.Time) (state, []effect.Effect) { return s, nil },
		Valid: func(s state) error {
			if s.Broken {
				return errors.New("it is broken")
			}
			return nil
		}})
	ctx, b := context.Background(), &bench{}
	for _, want := range []string{"", "state is not valid: it is broken"} { // the first memory is the broken one
		turn := engine.NewTurn(f, b, key, fact{b, "a"}.Event())
		if err := errors.Join(turn.Load(ctx), turn.Decide(time.Now()), turn.Commit(ctx)); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(turn.Forgot()); got != cmp.Or(want, "<nil>") {
			t.Errorf("forgot because %q, want %q", got, want)
		}
	}
}
