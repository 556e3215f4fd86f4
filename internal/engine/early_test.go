package engine_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// sleeper is a function that waits for a time and then for nothing.
func sleeper(until time.Time) fn.Registered {
	type state struct{ Folded int }
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, _ events.Event) state { s.Folded++; return s },
		Plan: func(s state, now time.Time) (state, []effect.Effect) {
			var at effect.Wake
			if now.Before(until) {
				at.By(until)
			}
			return s, at.Timer()
		}})
}

// together delivers facts that one turn folds.
func (b *bench) together(t *testing.T, gate chan struct{}, facts ...events.Event) {
	t.Helper()
	b.Deliver(told{fact{b, "holds"}, events.PodGone{}}) // its turn waits at the gate
	synctest.Wait()
	for _, e := range facts {
		b.Deliver(told{fact{b, "together"}, e})
	}
	close(gate)
	synctest.Wait()
	if n := b.count("ack together"); n != len(facts) {
		t.Fatalf("%d of %d facts are acknowledged: %q", n, len(facts), b.lines)
	}
}

// Which timers that have fired are set again on the bus, and for when: only the function's and the engine's own, if their time has not come.
func TestWhichTimersAreSetAgain(t *testing.T) {
	type set struct {
		name string
		in   time.Duration
	}
	wake := func(in time.Duration) events.Event { // for when the server took it to be
		return events.TimerFired{Name: "wake", At: time.Unix(946684800, 0).Add(in)} // where a bubble's clock begins
	}
	for _, c := range []struct {
		name  string
		after time.Duration // the timer is set for an hour
		facts []events.Event
		want  []set
	}{
		{"the server's clock is an hour ahead", 0, []events.Event{wake(time.Hour)}, []set{{"wake", 2*time.Hour + time.Second}}},
		{"it fires for its former time", 0, []events.Event{wake(0)}, []set{{"wake", time.Hour}}},
		{"it fires too late for its former time", 0, []events.Event{wake(-time.Minute)}, []set{{"wake", time.Hour}}},
		{"it fires in time", time.Hour, []events.Event{wake(time.Hour)}, nil},
		{"it fires late", 2 * time.Hour, []events.Event{wake(time.Hour)}, nil},
		{"that of what could not be read", 0, []events.Event{events.TimerFired{Name: events.Unread}}, nil},
		{"an observation", 0, []events.Event{events.PodObserved{}}, nil},
		{"behind that of what could not be read", 0, []events.Event{events.TimerFired{Name: events.Unread}, wake(0)}, []set{{"wake", time.Hour}}},
		{"behind an observation", 0, []events.Event{events.PodObserved{}, wake(0)}, []set{{"wake", time.Hour}}},
		{"behind one in time", 0, []events.Event{events.TimerFired{Name: "again"}, wake(0)}, []set{{"wake", time.Hour}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gate chan struct{} // the first turn meets none
				began, timers := time.Now(), &calendar{}
				b := start(t, sleeper(began.Add(time.Hour)), func(c *engine.Config) { c.Timers = timers }, broken(func(_ context.Context, request string) error {
					if request == "load" && gate != nil {
						<-gate
					}
					return nil
				}))
				b.Deliver(fact{b, "first"})
				synctest.Wait()
				<-time.After(time.Until(began.Add(c.after)))
				synctest.Wait()
				timers.all = nil
				gate = make(chan struct{})
				b.together(t, gate, c.facts...)
				var want []appointment
				for _, w := range c.want {
					want = append(want, appointment{w.name, began.Add(w.in)})
				}
				if !slices.Equal(timers.all, want) {
					t.Errorf("got  %v\nwant %v", timers.all, want)
				}
			})
		})
	}
}

// calendar are timers of a bus.
type calendar struct{ all []appointment }

type appointment struct {
	name string
	at   time.Time
}

func (c *calendar) Set(_ context.Context, _ events.Key, name string, at time.Time) error {
	c.all = append(c.all, appointment{name, at})
	return nil
}

// The fact of a timer that could not be set again comes again.
func TestATimerThatFiredEarlyAndCouldNotBeSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(time.Hour)
		b := start(t, sleeper(until))
		b.Deliver(fact{b, "first"})
		b.await(t, "ack first")
		b.timersFail(true)
		b.Deliver(fired{fact{b, "wake"}, until})
		synctest.Wait()
		if b.count("nak wake") != 1 || b.count("ack wake") != 0 {
			t.Errorf("got %q", b.lines)
		}
	})
}
