package engine_test

import (
	"context"
	"errors"
	"fmt"
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

// If hundreds of announcements hang, the turn waits for those under way and starts no further one. It ends when the first have
// been given up, and its other effects are done.
func TestHundredsOfAnnouncementsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, herald())
		b.act = gone
		b.hang = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		names := make([]string, 300)
		for i := range names {
			names[i] = fmt.Sprintf("%c%03d", 'a'+i%26, i)
		}
		b.Deliver(fact{b, strings.Join(names, " ")})
		got := <-b.turned
		if got.Duration > engine.AckWait {
			t.Errorf("the turn took %v", got.Duration)
		}
		tried, removed := 0, 0
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, line := range b.lines {
			if strings.HasPrefix(line, "announce ") {
				tried++
			}
			if strings.HasPrefix(line, "act RemoveFinalizer") {
				removed++
			}
		}
		if tried == 0 || tried > 32 || removed != len(names) {
			t.Errorf("%d announcements were tried, %d of %d finalizers removed", tried, removed, len(names))
		}
	})
}

// More announcements than are made at a time are made in one turn, beside effects that others refuse, without another decision.
func TestHundredsOfAnnouncementsThatAreConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a turn ends after a second of the clock
		b := start(t, herald())
		b.act = func(e effect.Effect) engine.Answer {
			return engine.Answer{Facts: append(gone(e).Facts, events.EffectRefused{Effect: effect.KindRemoveFinalizer})}
		}
		names := make([]string, 200)
		for i := range names {
			names[i] = fmt.Sprintf("%c%03d", 'a'+i%26, i)
		}
		b.Deliver(fact{b, strings.Join(names, " ")})
		if got := <-b.turned; got.Rounds != 2 || got.Effects != 2*len(names) || got.Err != nil {
			t.Errorf("%d effects in %d rounds, %v", got.Effects, got.Rounds, got.Err)
		}
	})
}

// An announcement that is refused for good is given up alone: the others are made.
func TestAnImpossibleAnnouncementSilencesNoOther(t *testing.T) {
	b := start(t, herald())
	b.act = gone
	b.announce = func(name string) error {
		if name == "a" {
			return impossible{errors.New("too large")}
		}
		return nil
	}
	b.Deliver(fact{b, "a b c"})
	b.await(t, "ack a b c")
	if b.count("announce a") != 1 || b.count("announce b") != 1 || b.count("announce c") != 1 || b.count("timer wake") != 0 {
		t.Errorf("got %q", b.lines)
	}
}

// Dropped announcements are reported to the operator, and the function learns that they were.
func TestDroppedAnnouncementsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a turn ends after a second of the clock
		type state struct{ Dropped bool }
		loser := fn.Register(fn.Function[state]{Name: "count", Version: 1,
			Observe: func(s state, e events.Event) state {
				if told, ok := e.(events.Announced); ok && told.ID == "dropped/7" {
					s.Dropped = false
				} else if _, ok := e.(events.TimerFired); ok {
					s.Dropped = true
				}
				return s
			},
			Plan: func(s state, _ time.Time) (state, []effect.Effect) {
				if s.Dropped {
					return s, []effect.Effect{effect.ReportDropped{ID: "dropped/7", Count: 7}}
				}
				return s, nil
			}})
		var dropped []string
		b := start(t, loser, func(c *engine.Config) {
			c.Dropped = func(function string, count int) { dropped = append(dropped, fmt.Sprint(function, " ", count)) } // in the one turn there is
		})
		b.Deliver(fact{b, "a"})
		if got := <-b.turned; got.Err != nil || got.Rounds != 2 {
			t.Errorf("%d rounds, %v", got.Rounds, got.Err)
		}
		if !slices.Equal(dropped, []string{"count 7"}) {
			t.Errorf("dropped %q", dropped)
		}
	})
}

// A Job creates Pods without end, and the API server needs longer for the effects of one decision than a decision is valid. Its
// announcements are still made: they do not queue behind those effects.
func TestABusyJobIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type state struct{ Begun, Told bool }
		busy := fn.Register(fn.Function[state]{Name: "count", Version: 1,
			Observe: func(s state, e events.Event) state {
				_, told := e.(events.Announced)
				return state{Begun: true, Told: s.Told || told}
			},
			Plan: func(s state, _ time.Time) (state, []effect.Effect) {
				out := make([]effect.Effect, 1000, 1001)
				for i := range out {
					out[i] = effect.CreatePod{Name: fmt.Sprint(i)}
				}
				if !s.Told {
					out = append(out, effect.Announce{Event: tickOf("a")})
				}
				return s, out
			}})
		b := start(t, busy)
		b.act = func(effect.Effect) engine.Answer {
			<-time.After(100 * time.Millisecond) // 1000 of them, 32 at once: 3 s
			return engine.Answer{}
		}
		b.Deliver(fact{b, "a"})
		b.await(t, "announce a")
	})
}
