package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// one is a Store of one key, in memory.
type one struct {
	state    []byte
	revision uint64
}

func (s *one) Load(context.Context, events.Key) ([]byte, uint64, error) {
	return s.state, s.revision, nil
}

func (s *one) Save(_ context.Context, _ events.Key, state []byte, revision uint64, _ bool) (uint64, error) {
	if revision != s.revision {
		return 0, engine.ErrConflict
	}
	s.state, s.revision = state, s.revision+1
	return s.revision, nil
}

func (s *one) Forget(context.Context, events.Key) error { *s = one{}; return nil }

// finder wants each Pod found of which it knows nothing yet but its name.
var finder = fn.Register(fn.Function[[]string]{Name: "finder", Version: 1,
	Observe: func(missing []string, e events.Event) []string {
		switch e := e.(type) {
		case events.TimerFired:
			return []string{e.Name}
		case events.PodGone:
			return nil
		}
		return missing
	},
	Plan: func(missing []string, _ time.Time) (_ []string, out []effect.Effect) {
		for _, name := range missing {
			out = append(out, effect.FindPod{Name: name})
		}
		return missing, out
	},
})

// The whole driving loop of one key: load, decide, commit, act, and again with the answers; then the facts may be acknowledged. A Runner
// does this for many keys at once, with real adapters (examples/function), and repeats what fails.
func Example() {
	ctx, store := context.Background(), &one{}
	key := events.Key{Function: finder.Name, Namespace: "default", UID: "1"}
	actor := engine.ActorFunc(func(_ context.Context, _ events.Key, e effect.Effect) ([]events.Event, error) {
		fmt.Println("act:", e)
		return []events.Event{events.PodGone{Pod: events.Pod{Name: e.(effect.FindPod).Name}}}, nil
	})

	turn := engine.NewTurn(finder, store, key, events.TimerFired{Name: "pi-0"})
	for decide := true; decide; decide = turn.Again() { // the answers are facts, too
		err := engine.ErrConflict
		for errors.Is(err, engine.ErrConflict) { // another worker was faster: begin again with its state
			if err = errors.Join(turn.Load(ctx), turn.Decide(time.Now())); err == nil {
				err = turn.Commit(ctx) // before any effect
			}
		}
		if err != nil {
			fmt.Println("the facts go back to the bus:", err)
			return
		}
		fmt.Println("committed: revision", store.revision)
		for _, e := range turn.Effects() {
			turn.Answer(turn.Act(ctx, actor, e, time.Now()))
		}
	}
	fmt.Println("acknowledge, unless there is something to repeat:", turn.Err())

	// Output:
	// committed: revision 1
	// act: FindPod pi-0
	// committed: revision 2
	// acknowledge, unless there is something to repeat: <nil>
}
