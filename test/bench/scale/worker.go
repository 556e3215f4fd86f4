package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/engine"
)

const (
	clusterName = "bench"
	function    = "count"
)

// tally is the state of a key: which facts are in it, and how often one was applied.
type tally struct {
	Seen    intervals.Set
	Applied int
}

// counting returns a function that applies every fact once and recognises repeated ones.
func counting() fn.Registered {
	return fn.Register(fn.Function[tally]{
		Name: function, Version: 1, Wakes: []events.Type{events.TypePodObserved},
		Observe: func(s tally, e events.Event) tally {
			if o, ok := e.(events.PodObserved); ok && !s.Seen.Has(int(o.Pod.Version)) {
				s.Seen, s.Applied = s.Seen.With(int(o.Pod.Version)), s.Applied+1
			}
			return s
		},
		Plan: func(s tally, _ time.Time) (tally, []effect.Effect) { return s, nil },
	})
}

// serve is a reconciler of that function, until ctx ends. It writes a line to stdout for every turn, and one for every fact that it has
// acknowledged: the key, the number, and the times of its publication and its acknowledgement, in nanoseconds.
func serve(ctx context.Context, url string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	b, err := bus.Connect(ctx, bus.Config{URL: url, Cluster: clusterName, Log: log})
	if err != nil {
		return err
	}
	defer b.Close()
	store, err := b.Store(function)
	if err != nil {
		return err
	}
	m := app.NewMember(app.MemberConfig{Bus: b, Log: log, Functions: []engine.Config{{
		Function: counting(), Store: store, Actor: engine.ActorFunc(noEffects), Timers: b.Timers(), Announcer: b, Log: log, Turned: printTurn,
	}}})
	return m.Run(ctx)
}

func noEffects(context.Context, events.Key, effect.Effect) ([]events.Event, error) {
	return nil, errors.New("this function has no effects")
}

// printTurn writes at once and in one piece, so that no acknowledged fact is missing if the process is killed.
func printTurn(t engine.Turned) {
	if t.Err != nil {
		return
	}
	lines := []byte("turn\n")
	now := time.Now().UnixNano()
	for _, e := range t.Facts {
		if o, ok := e.(events.PodObserved); ok {
			lines = fmt.Appendf(lines, "done %s %d %d %d\n", t.Key.UID, o.Pod.Version, o.Pod.Created.UnixNano(), now)
		}
	}
	_, _ = os.Stdout.Write(slices.Clip(lines)) // the parent has closed the pipe if it fails
}

// read returns how many facts are in a state, and how often one was applied.
func read(state []byte) (seen, applied int, err error) {
	reader := fn.Register(fn.Function[tally]{Name: function, Version: 1, Observe: func(s tally, _ events.Event) tally { return s },
		Plan: func(s tally, _ time.Time) (tally, []effect.Effect) {
			seen, applied = s.Seen.Len(), s.Applied
			return s, nil
		}})
	_, err = reader.Decide(state, nil, time.Time{})
	return seen, applied, err
}
