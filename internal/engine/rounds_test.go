package engine_test

import (
	"context"
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

// creator is a function like that of Jobs: it creates a Pod, and then removes the finalizer of each Pod that it has observed.
func creator() fn.Registered {
	type state struct {
		Created bool
		Seen    []string
	}
	return fn.Register(fn.Function[state]{Name: "create", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e := e.(type) {
			case events.PodObserved:
				if s.Created = s.Created || e.Pod.Name == "created"; e.Pod.Name != "created" && !slices.Contains(s.Seen, e.Pod.Name) {
					s.Seen = append(s.Seen, e.Pod.Name)
				}
			case events.PodGone:
				s.Seen = slices.DeleteFunc(s.Seen, func(name string) bool { return name == e.Pod.Name })
			}
			return s
		},
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			if !s.Created {
				return s, []effect.Effect{effect.CreatePod{Name: "created"}}
			}
			var out []effect.Effect
			for _, name := range s.Seen {
				out = append(out, effect.RemoveFinalizer{Name: name})
			}
			return s, out
		}})
}

// answered carries out the effects of creator.
func answered(e effect.Effect) engine.Answer {
	if c, creates := e.(effect.CreatePod); creates {
		return engine.Answer{Facts: []events.Event{events.PodObserved{Pod: events.Pod{Name: c.Name}}}}
	}
	return gone(e)
}

// other is a fact with an event of its own.
type other struct {
	factOf
	event events.Event
}

func (o other) Event() events.Event { return o.event }

func observed(b *bench, key events.Key, pod string) other {
	return other{factOf{fact{b, pod}, key}, events.PodObserved{Pod: events.Pod{Name: pod}}}
}

// What arrives while a turn acts is folded into its next round: one decision, one state, and one status write for both. What may mean
// something only to a newer state waits for the next turn.
func TestWhatArrivesBetweenRoundsJoinsTheTurn(t *testing.T) {
	for _, c := range []struct {
		name  string
		event events.Event
		turns int
	}{
		{"an observation", events.PodObserved{Pod: events.Pod{Name: "late"}}, 1},
		{"the end of an object", events.PodGone{Pod: events.Pod{Name: "early"}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			turns := make(chan engine.Turned, 10)
			b := start(t, creator(), func(c *engine.Config) { c.Turned = func(t engine.Turned) { turns <- t } })
			b.act = func(e effect.Effect) engine.Answer {
				if _, creates := e.(effect.CreatePod); creates {
					b.Deliver(other{factOf{fact{b, "late"}, key}, c.event})
				}
				return answered(e)
			}
			b.Deliver(observed(b, key, "early"))
			b.await(t, "ack early")
			b.await(t, "ack late")
			for range c.turns {
				<-turns
			}
			if len(turns) > 0 {
				t.Errorf("more than %d turns: %q", c.turns, b.lines)
			}
			if n := b.count("act RemoveFinalizer late"); c.turns == 1 && n != 1 {
				t.Errorf("what joined was acted upon %d times: %q", n, b.lines)
			}
		})
	}
}

// Where the API server is slow, a turn takes longer than a second. Its facts are acknowledged then only if they fill their partition:
// that costs a timer on the bus, which is one more fact, and one more turn.
func TestASlowTurnGoesOnWhereItsPartitionHasRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		facts  int
		change func(*engine.Config)
		timers int
	}{
		{name: "few facts", facts: 127},
		{name: "many facts", facts: 128, timers: 1},
		{name: "few facts, and a conflict", facts: 3, timers: 1, change: failNth("save", 2, engine.ErrConflict)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := make(chan engine.Turned, 10)
				b := start(t, creator(), func(cfg *engine.Config) {
					cfg.Turned = func(t engine.Turned) { turns <- t }
					if c.change != nil {
						c.change(cfg)
					}
				})
				b.act = func(e effect.Effect) engine.Answer {
					<-time.After(700 * time.Millisecond)
					return answered(e)
				}
				for i := range c.facts {
					b.Deliver(observed(b, key, fmt.Sprint("p", i)))
				}
				<-time.After(time.Minute)
				if n, _ := b.set("again"); n != c.timers || len(turns) != 1+c.timers {
					t.Errorf("%d timers and %d turns, want %d and %d: %q", n, len(turns), c.timers, 1+c.timers, b.lines)
				}
				if got := fates(b); !strings.HasPrefix(got, fmt.Sprintf("%d acknowledged, 0 given back", c.facts)) {
					t.Error(got)
				}
			})
		})
	}
}

// A Job that has created Pods lets other Jobs create theirs before it goes on: meanwhile its Pods may end, and one status write tells
// both.
func TestATurnThatHasCreatedPodsLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := in("a", 1), in("a", 2)
		var order journal
		b := startWith(t, creator(), 1, func(b *bench, key events.Key, e effect.Effect) engine.Answer {
			order.add("%s %s", key.UID, e.Kind())
			if _, creates := e.(effect.CreatePod); creates && key == one {
				b.Deliver(observed(b, two, "second"))
				<-time.After(time.Millisecond) // of the test's clock: the other key waits for its turn
			} else if creates {
				<-time.After(900 * time.Millisecond)
			}
			return answered(e)
		})
		b.Deliver(observed(b, one, "first"))
		if first := <-b.turned; first.Key != one || first.Duration != time.Millisecond || first.Rounds != 3 {
			t.Errorf("the turn of %v took %v in %d rounds: what the others took is not its own", first.Key, first.Duration, first.Rounds)
		}
		<-time.After(time.Second)
		order.mu.Lock()
		defer order.mu.Unlock()
		want := "a-1 CreatePod, a-2 CreatePod, a-1 RemoveFinalizer, a-2 RemoveFinalizer"
		if got := strings.Join(order.lines, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// startWith runs the function with so many turns at once until the test ends.
func startWith(t *testing.T, f fn.Registered, turns int, act func(*bench, events.Key, effect.Effect) engine.Answer) *bench {
	var b *bench
	b = start(t, f, func(c *engine.Config) {
		c.Keys, c.Store = turns, &memories{all: map[events.Key]memory{}}
		c.Actor = engine.ActorFunc(func(_ context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
			a := act(b, key, e)
			return a.Facts, a.Err
		})
	})
	return b
}
