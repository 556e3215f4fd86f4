package engine_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// hoarder remembers every name in its facts until it learns that its state is too large: then it writes the reason down. A
// stubborn one forgets nothing.
func hoarder(stubborn bool) fn.Registered {
	type state struct {
		Names string
		Why   string
	}
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e := e.(type) {
			case events.TimerFired:
				s.Names += e.Name
			case events.EffectRefused:
				if s.Why = e.Effect + " " + e.Reason + ": " + e.Message; !stubborn {
					s.Names = ""
				}
			}
			return s
		},
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			if s.Why == "" {
				return s, nil
			}
			return s, []effect.Effect{effect.RemoveFinalizer{Name: s.Why}}
		}})
}

// TestAStateThatIsTooLargeHoldsUpNothing: the function learns of it and shrinks its state, and its facts are acknowledged.
func TestAStateThatIsTooLargeHoldsUpNothing(t *testing.T) {
	for name, stubborn := range map[string]bool{"the function forgets": false, "the function forgets nothing, and begins anew": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, hoarder(stubborn))
				b.most = 150
				huge := strings.Repeat("x", 200)
				b.Deliver(fact{b, huge})
				b.await(t, "ack "+huge)
				want := []string{"too large", "commit", "act RemoveFinalizer SaveState StateTooLarge: BYTES bytes, at most 150 fit", "ack " + huge}
				if stubborn {
					want = slices.Insert(want, 0, "too large")
				}
				size := regexp.MustCompile(`: \d+ bytes`)
				for i := range b.lines {
					b.lines[i] = size.ReplaceAllString(b.lines[i], ": BYTES bytes")
				}
				if !slices.Equal(b.lines, want) {
					t.Errorf("got  %q\nwant %q", b.lines, want)
				}
				b.Deliver(fact{b, "small"})
				b.await(t, "ack small")
				if got := <-b.turned; got.Err != nil {
					t.Error(got.Err)
				}
			})
		})
	}
}

// TestAStateThatIsTooLargeMeetsAConflict: another worker was faster, so everything is decided again on the state that it has
// saved.
func TestAStateThatIsTooLargeMeetsAConflict(t *testing.T) {
	ctx, b := context.Background(), &bench{most: 150}
	turn := engine.NewTurn(hoarder(false), racing{b}, key, fact{b, strings.Repeat("x", 200)}.Event())
	if err := turn.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for round := 0; ; round++ {
		if err := turn.Decide(time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		err := turn.Commit(ctx)
		if err == nil && round == 1 {
			break
		}
		if round > 0 {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := turn.Load(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if turn.Forgot() == nil || len(turn.Effects()) != 1 {
		t.Errorf("forgot %v, wants %v", turn.Forgot(), turn.Effects())
	}
}

// racing is a store in which another worker saves right after the first state that is too large.
type racing struct{ *bench }

func (r racing) Save(ctx context.Context, k events.Key, data []byte, revision uint64, rests bool) (uint64, error) {
	next, err := r.bench.Save(ctx, k, data, revision, rests)
	if err != nil && r.revision == 0 {
		r.revision++
	}
	return next, err
}
