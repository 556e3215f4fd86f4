package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// patient is counter with a timer that is set while nothing is open, so that the runner never forgets its key.
func patient() fn.Registered {
	type state struct{ Open []string }
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e := e.(type) {
			case events.TimerFired:
				if e.Name != "again" {
					s.Open = []string{e.Name}
				}
			case events.PodGone:
				s.Open = nil
			}
			return s
		},
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			if len(s.Open) > 0 {
				return s, []effect.Effect{effect.RemoveFinalizer{Name: s.Open[0]}}
			}
			return s, []effect.Effect{effect.SetTimer{Name: "wake", At: time.Unix(1<<32, 0)}}
		}})
}

// A backoff doubles while nothing succeeds, and begins at a second again after a turn that has succeeded.
func TestASuccessEndsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, patient())
		var tries []time.Duration
		began, last := time.Now(), 0
		b.act = func(e effect.Effect) engine.Answer {
			tries = append(tries, time.Since(began))
			if last++; last == 4 || last == 7 {
				return gone(e)
			}
			return engine.Answer{Err: engine.Retry{Err: errors.New("timeout")}}
		}
		b.Deliver(fact{b, "a"})
		<-time.After(10 * time.Second)
		synctest.Wait()
		b.Deliver(fact{b, "b"})
		<-time.After(10 * time.Second)
		synctest.Wait()
		for i, d := range tries {
			tries[i] = d.Truncate(time.Second)
		}
		if want := []time.Duration{0, 1e9, 3e9, 7e9, 10e9, 11e9, 13e9}; !slices.Equal(tries, want) {
			t.Errorf("tried after %v, want %v", tries, want)
		}
	})
}

// While the bus is away, each fact that comes fails a turn. That is no reason to wait for long once it is back: what has come meanwhile
// is done within seconds, effects that the API server fails then begin with the shortest backoff, and the log stays short.
func TestABusThatIsBackIsUsedWithinSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logbook
		away := errors.New("the bus is away")
		var mu sync.Mutex
		b := start(t, counter(), into(&log), broken(func(context.Context, string) error {
			mu.Lock()
			defer mu.Unlock()
			return away
		}))
		var tries []time.Duration
		var back time.Time
		b.act = func(e effect.Effect) engine.Answer {
			if tries = append(tries, time.Since(back)); len(tries) == 1 {
				return engine.Answer{Err: engine.Retry{Err: errors.New("timeout")}}
			}
			return gone(e)
		}
		for range 120 {
			b.Deliver(fact{b, "a"})
			<-time.After(time.Second)
		}
		mu.Lock()
		back, away = time.Now(), nil
		mu.Unlock()
		b.Deliver(fact{b, "a"}) // the bus delivers again what was put back
		<-time.After(20 * time.Second)
		synctest.Wait()
		if len(tries) != 2 || tries[0] > 4*time.Second || tries[1]-tries[0] != time.Second {
			t.Errorf("tried %v after the bus was back", tries)
		}
		if n := log.count("WARN turn put back"); n == 0 || n > 10 {
			t.Errorf("logged %d times: %q", n, log.lines)
		}
	})
}

// A failure of the bus does not end the backoff of effects that the API server fails.
func TestAFailureOfTheBusLeavesTheBackoffOfEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter(), failNth("save", 2, errors.New("the bus is away")))
		var tries []time.Duration
		began := time.Now()
		b.act = func(e effect.Effect) engine.Answer {
			if tries = append(tries, time.Since(began)); len(tries) == 1 {
				return engine.Answer{Err: engine.Retry{Err: errors.New("too many requests"), After: 30 * time.Second}}
			}
			return gone(e)
		}
		b.Deliver(fact{b, "a"})
		<-time.After(time.Second)
		b.Deliver(fact{b, "a"}) // its turn meets the failure
		<-time.After(time.Minute)
		synctest.Wait()
		if len(tries) != 2 || tries[1] != 30*time.Second || b.count("nak a") != 1 {
			t.Errorf("tried after %v; %q", tries, b.lines)
		}
	})
}

// A fact that comes back before the effects may be done is saved and acknowledged. So the timer that wakes the key at the end is set
// before that: this process may not live until then.
func TestAFactThatComesBackTooEarlyLeavesATimer(t *testing.T) {
	for _, c := range []struct {
		name  string
		act   error
		save  int // which one fails
		back  time.Duration
		least time.Duration
		want  []string
	}{
		{"effects back off for longer", engine.Retry{Err: errors.New("too many requests"), After: 30 * time.Second}, 0, 2 * time.Second, 29 * time.Second,
			[]string{"act RemoveFinalizer a", "nak a", "timer again", "ack a"}},
		{"the bus has not learned for how long", nil, 1, 500 * time.Millisecond, time.Second,
			[]string{"nak a", "timer again", "ack a", "act RemoveFinalizer a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, counter(), failNth("save", c.save, errors.New("the bus is away")))
				b.act = func(e effect.Effect) engine.Answer {
					if c.act == nil {
						return gone(e)
					}
					return engine.Answer{Err: c.act}
				}
				b.timerless = true
				began := time.Now()
				b.Deliver(fact{b, "a"})
				<-time.After(c.back)
				b.mu.Lock()
				b.timerless = false
				b.mu.Unlock()
				b.Deliver(fact{b, "a"})
				<-time.After(time.Second)
				synctest.Wait()
				steps := slices.DeleteFunc(slices.Clone(b.lines), func(l string) bool { return l == "commit" })
				if !slices.Equal(steps, c.want) || b.timer.Sub(began) < c.least {
					t.Errorf("%q, want %q; the timer is set for %v later", steps, c.want, b.timer.Sub(began))
				}
			})
		})
	}
}

// A turn that meets a conflict does nothing before what it has decided anew is saved; and nothing at all if it cannot read the newer state.
func TestAConflictIsCommittedBeforeAnythingIsDone(t *testing.T) {
	for _, c := range []struct {
		name string
		load error
		want []string
	}{
		{"the newer state is read", nil, []string{"conflict", "commit", "act RemoveFinalizer a", "commit", "ack a"}},
		{"it cannot be read", errors.New("the bus is away"), []string{"conflict", "nak a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, counter(), failNth("load", 2, c.load))
				b.act, b.conflicts = gone, 1
				b.Deliver(fact{b, "a"})
				synctest.Wait()
				if !slices.Equal(b.lines, c.want) {
					t.Errorf("got  %q\nwant %q", b.lines, c.want)
				}
			})
		})
	}
}

// The runner forgets keys for which nothing is left to do: a cluster has millions of them in the course of time.
func TestKeysThatRestAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memories{all: map[events.Key]memory{}}
		b := start(t, counter(), func(c *engine.Config) { c.Store = m })
		release := b.blocked()
		all := others(10)
		for _, k := range all {
			b.Deliver(factOf{fact{b, "a"}, k})
		}
		synctest.Wait()
		if n := b.Keys(); n != len(all) {
			t.Errorf("%d of %d keys are known that take a turn", n, len(all))
		}
		release()
		synctest.Wait()
		if n := b.Keys(); n != 0 || b.count("ack a") != len(all) {
			t.Errorf("%d keys are known: %q", n, b.lines)
		}
	})
}

// asking is a fact that records when the runner asks for more time.
type asking struct {
	fact
	began time.Time
	asked *[]time.Duration
}

func (a asking) InProgress() { *a.asked = append(*a.asked, time.Since(a.began).Truncate(time.Second)) }

// The bus gives a fact to another worker after three seconds. For every fact in hand the runner asks for more time each second: those of
// the turn, those that are remembered beside it, and those that wait.
func TestMoreTimeIsAskedForInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads, gate, began := 0, make(chan struct{}), time.Now()
		b := start(t, counter(), broken(func(_ context.Context, request string) error {
			if request == "load" {
				if loads++; loads > 1 {
					<-gate
				}
			}
			return nil
		}))
		release := b.blocked()
		asked := make([][]time.Duration, 3)
		for i, name := range []string{"of the turn", "remembered", "waiting"} {
			b.Deliver(asking{fact{b, name}, began, &asked[i]})
			<-time.After(2400 * time.Millisecond)
		}
		<-time.After(time.Until(began.Add(9500 * time.Millisecond)))
		synctest.Wait()
		for i, first := range []int{1, 3, 5} {
			var want []time.Duration
			for second := first; second < 10; second++ {
				want = append(want, time.Duration(second)*time.Second)
			}
			if !slices.Equal(asked[i], want) {
				t.Errorf("fact %d: asked after %v, want %v", i, asked[i], want)
			}
		}
		if loads != 2 {
			t.Errorf("%d loads: no fact is being remembered", loads)
		}
		close(gate)
		release()
	})
}
