package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

var key = events.Key{Function: "count", Namespace: "default", UID: "u"}

// journal records what happens, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) count(line string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if l == line {
			n++
		}
	}
	return n
}

// bench is a runner over ports in memory: the state of one key, an actor, and deliveries that only write into the journal.
type bench struct {
	journal
	*engine.Runner
	state     []byte
	revision  uint64
	conflicts int                               // how many saves lose
	most      int                               // the largest state that is accepted, in bytes; 0 for any
	act       func(effect.Effect) engine.Answer // nil: every effect succeeds
	announce  func(name string) error           // nil: every announcement is confirmed
	hang      func(context.Context) error       // not nil: instead of announce
	timerless bool                              // no timer can be set
	timer     time.Time                         // for when the last one was
	turned    chan engine.Turned                // receives the first turn
}

// start runs the function f until the test ends.
func start(t *testing.T, f fn.Registered, change ...func(*engine.Config)) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{turned: make(chan engine.Turned, 1)}
	c := engine.Config{Function: f, Store: b, Actor: engine.ActorFunc(b.perform), Timers: b, Announcer: b, Log: slog.New(slog.DiscardHandler), Turned: b.record}
	for _, f := range change {
		f(&c)
	}
	b.Runner = engine.NewRunner(ctx, c)
	t.Cleanup(func() {
		cancel()
		b.Wait()
	})
	return b
}

func (b *bench) Load(context.Context, events.Key) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state, b.revision, nil
}

func (b *bench) Save(_ context.Context, _ events.Key, data []byte, revision uint64, _ bool) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conflicts > 0 {
		b.conflicts--
		b.revision++
	}
	if revision != b.revision {
		b.lines = append(b.lines, "conflict")
		return 0, engine.ErrConflict
	}
	if b.most > 0 && len(data) > b.most {
		b.lines = append(b.lines, "too large")
		return 0, tooLarge{fmt.Errorf("%d bytes, at most %d fit", len(data), b.most)}
	}
	b.state, b.revision = data, revision+1
	b.lines = append(b.lines, "commit")
	return b.revision, nil
}

// tooLarge is an error that no retry cures.
type tooLarge struct{ error }

func (tooLarge) Permanent() bool { return true }

func (b *bench) Forget(context.Context, events.Key) error {
	b.add("forget")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = nil
	b.revision++
	return nil
}

func (b *bench) Set(_ context.Context, _ events.Key, name string, at time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timerless {
		return errors.New("no timers")
	}
	b.lines = append(b.lines, "timer "+name)
	b.timer = at
	return nil
}

func (b *bench) perform(_ context.Context, _ events.Key, e effect.Effect) ([]events.Event, error) {
	b.add("act %v", e)
	if b.act == nil {
		return nil, nil
	}
	a := b.act(e)
	return a.Facts, a.Err
}

func (b *bench) record(t engine.Turned) {
	select {
	case b.turned <- t:
	default:
	}
}

// fact is a delivery that writes its outcome into the journal.
type fact struct {
	b    *bench
	name string
}

func (f fact) Key() events.Key      { return key }
func (f fact) Event() events.Event  { return events.TimerFired{Name: f.name} }
func (f fact) Ack()                 { f.b.add("ack %s", f.name) }
func (f fact) Nak(time.Duration)    { f.b.add("nak %s", f.name) }
func (f fact) InProgress()          {}
func (f fact) Quarantine(why error) { f.b.add("quarantine %s: %v", f.name, why != nil) }

// await waits until the journal has the line.
func (b *bench) await(t *testing.T, line string) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for b.count(line) == 0 {
		select {
		case <-deadline:
			t.Fatalf("never happened: %q; what did:\n%v", line, b.lines)
		case <-time.After(time.Millisecond):
		}
	}
}

// counter counts the facts it has seen by name, and wants a Pod's finalizer removed for each until it learns that it was.
func counter() fn.Registered {
	type state struct{ Open []string }
	return fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			switch e := e.(type) {
			case events.TimerFired:
				if e.Name == "poison" {
					panic("cannot digest this")
				}
				if e.Name != "wake" && !slices.Contains(s.Open, e.Name) {
					s.Open = append(s.Open, e.Name)
				}
			case events.PodGone:
				s.Open = slices.DeleteFunc(s.Open, func(name string) bool { return name == e.Pod.Name })
			}
			return s
		},
		Plan: func(s state, _ time.Time) (state, []effect.Effect) {
			var out []effect.Effect
			for _, name := range s.Open {
				out = append(out, effect.RemoveFinalizer{Name: name})
			}
			return s, out
		}})
}

// gone answers an effect with the fact that ends it.
func gone(e effect.Effect) engine.Answer {
	return engine.Answer{Facts: []events.Event{events.PodGone{Pod: events.Pod{Name: e.(effect.RemoveFinalizer).Name}}}}
}
