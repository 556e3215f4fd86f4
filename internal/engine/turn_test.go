package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// TestAForgottenMemoryIsToldEverythingAgain: a fact is in the state after the first round, and acknowledged after the last.
// Where somebody forgets the state in between, it must not be lost with it.
func TestAForgottenMemoryIsToldEverythingAgain(t *testing.T) {
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
	turn.Fold(fact{b, "b"}.Event())
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
