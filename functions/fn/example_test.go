package fn_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// memory is the function's state for one Job.
type memory struct {
	Version uint64
	Name    string
	Ended   time.Time
}

// sweep is a function that deletes each Job a day after it was completed.
var sweep = fn.Function[memory]{
	Name:    "sweep",
	Version: 1,
	Wakes:   []events.Type{events.TypeJobObserved, events.TypeTimerFired},
	Observe: func(m memory, e events.Event) memory { // remembers; an older observation changes nothing
		if e, ok := e.(events.JobObserved); ok && e.Job.Version > m.Version {
			m = memory{Version: e.Job.Version, Name: e.Job.Name}
			if t := e.Job.Status.CompletionTime; t != nil {
				m.Ended = t.Time
			}
		}
		return m
	},
	Plan: func(m memory, now time.Time) (memory, []effect.Effect) { // decides from the state alone
		due := m.Ended.Add(24 * time.Hour)
		switch {
		case m.Ended.IsZero():
			return m, nil
		case now.Before(due):
			return m, []effect.Effect{effect.SetTimer{Name: "wake", At: due}}
		}
		return m, []effect.Effect{effect.DeleteJob{Job: m.Name, Version: m.Version}}
	},
}

// A function has no side effects: it returns what is to be done. Observe folds each fact into the state, and Plan decides once
// after all of them. A late or repeated fact changes no decision. Plan returns an effect again until a fact shows its result.
func ExampleFunction() {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	running := events.JobObserved{Job: events.Job{Name: "pi", Version: 1}}
	ended := events.JobObserved{Job: events.Job{Name: "pi", Version: 2}}
	ended.Job.Status.CompletionTime = &metav1.Time{Time: noon}

	m, effects := sweep.Decide(memory{}, []events.Event{running}, noon)
	fmt.Println("runs:", effects)
	m, effects = sweep.Decide(m, []events.Event{ended, running, ended}, noon)
	fmt.Println("has ended, observed late and twice:", effects)
	m, effects = sweep.Decide(m, []events.Event{events.TimerFired{Name: "wake"}}, noon.Add(24*time.Hour))
	fmt.Println("a day later:", effects)
	_, effects = sweep.Decide(m, nil, noon.Add(25*time.Hour))
	fmt.Println("deletion not observed yet:", effects)

	// Output:
	// runs: []
	// has ended, observed late and twice: [SetTimer wake 12:00:00]
	// a day later: [DeleteJob pi@2]
	// deletion not observed yet: [DeleteJob pi@2]
}
