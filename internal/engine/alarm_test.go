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

// TestATimerThatRangEarlyIsSetAgain: where the server's clock is ahead, its timer rings before our time has come. If only
// our own alarm were left then, nobody would look after the key once this process ends.
func TestATimerThatRangEarlyIsSetAgain(t *testing.T) {
	at := time.Now().Add(time.Hour)
	type state struct{ Woken int }
	f := fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, _ events.Event) state { s.Woken++; return s },
		Plan:    func(s state, _ time.Time) (state, []effect.Effect) { return s, []effect.Effect{effect.SetTimer{Name: "wake", At: at}} }})
	b, set := &bench{}, make(clocks, 10)
	ctx, cancel := context.WithCancel(context.Background())
	r := engine.NewRunner(ctx, engine.Config{Function: f, Store: b, Actor: engine.ActorFunc(b.perform), Timers: set, Announcer: b, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { cancel(); r.Wait() })

	r.Deliver(fact{b, "first"})
	b.await(t, "ack first")
	r.Deliver(fact{b, "again"})
	b.await(t, "ack again")
	if first := <-set; !first.Equal(at) || len(set) > 0 {
		t.Fatalf("set for %v, wanted %v; and %d times more, though nothing has rung", first, at, len(set))
	}
	r.Deliver(fact{b, "wake"})
	b.await(t, "ack wake")
	if len(set) != 1 {
		t.Fatalf("set %d times when the timer has rung an hour early, want once", len(set))
	}
	if next := <-set; next.Before(at.Add(59 * time.Minute)) {
		t.Errorf("set for %v, when a server that is an hour ahead would ring at once", next)
	}
}
