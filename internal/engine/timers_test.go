package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// clocks are the timers of a bus, in the order in which they were set.
type clocks chan time.Time

func (c clocks) Set(_ context.Context, _ events.Key, _ string, at time.Time) error {
	c <- at
	return nil
}

// fired is the fact of a timer that was set for the given time.
type fired struct {
	fact
	at time.Time
}

func (r fired) Event() events.Event { return events.TimerFired{Name: r.name, At: r.at} }

// waker is a function that only waits until the given time.
func waker(until time.Time) fn.Registered {
	type state struct{ Woken int }
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, _ events.Event) state { s.Woken++; return s },
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			return s, []effect.Effect{effect.SetTimer{Name: "wake", At: until}}
		}})
}

// startWaker runs a waker until the test ends.
func startWaker(t *testing.T, until time.Time) (*bench, *engine.Runner, clocks) {
	t.Helper()
	b, set := &bench{}, make(clocks, 10)
	ctx, cancel := context.WithCancel(context.Background())
	r := engine.NewRunner(ctx, engine.Config{Function: waker(until), Store: b, Actor: engine.ActorFunc(b.perform), Timers: set, Announcer: b,
		Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		cancel()
		r.Wait()
	})
	r.Deliver(fact{b, "first"})
	b.await(t, "ack first")
	if at := <-set; !at.Equal(until) {
		t.Fatalf("set for %v, wanted %v", at, until)
	}
	return b, r, set
}

func TestATimerIsSetOnce(t *testing.T) {
	b, r, set := startWaker(t, time.Now().Add(time.Hour))
	r.Deliver(fact{b, "again"})
	b.await(t, "ack again")
	if len(set) > 0 {
		t.Errorf("set %d times more, and nothing has fired", len(set))
	}
}

// TestATimerThatFiredEarlyIsSetAgain: if the server's clock is ahead, its timer fires before this process's time has come. If only
// the wakeup in this process were left then, the key would never wake again once the process ends.
func TestATimerThatFiredEarlyIsSetAgain(t *testing.T) {
	until := time.Now().Add(time.Hour)
	b, r, set := startWaker(t, until)
	r.Deliver(fired{fact{b, "wake"}, until})
	b.await(t, "ack wake")
	if len(set) != 1 {
		t.Fatalf("set %d times when the timer has fired an hour early, want once", len(set))
	}
	if next := <-set; next.Before(until.Add(59 * time.Minute)) {
		t.Errorf("set for %v, when a server that is an hour ahead would fire at once", next)
	}
}

// TestATimerThatFiredForItsFormerTimeIsSetAgain: a timer was set again while it fired. That is no clock that is ahead. The server
// may or may not have lost the new time: it is set once more, and not for later.
func TestATimerThatFiredForItsFormerTimeIsSetAgain(t *testing.T) {
	until := time.Now().Add(time.Hour)
	b, r, set := startWaker(t, until)
	r.Deliver(fired{fact{b, "wake"}, time.Now().Add(-time.Millisecond)})
	b.await(t, "ack wake")
	if len(set) != 1 {
		t.Fatalf("set %d times when the timer has fired for the time before, want once", len(set))
	}
	if next := <-set; next.Sub(until).Abs() > time.Second {
		t.Errorf("set for %v, wanted %v", next, until)
	}
}

// TestATimerIsSetAgainWhenTheStateIsLost: with the bus, its timers are lost, too.
func TestATimerIsSetAgainWhenTheStateIsLost(t *testing.T) {
	until := time.Now().Add(time.Hour)
	b, r, set := startWaker(t, until)
	b.mu.Lock()
	b.state, b.revision = nil, 0
	b.mu.Unlock()
	r.Deliver(fact{b, "again"})
	b.await(t, "ack again")
	if len(set) != 1 {
		t.Fatalf("set %d times after the bus was lost, want once", len(set))
	}
	if at := <-set; !at.Equal(until) {
		t.Errorf("set for %v, wanted %v", at, until)
	}
}
