// Package function is a function of your own, whole: it keeps the label example.jobstream.dev/retries on each Job, so that a user sees
// which Jobs needed more than one attempt:
//
//	kubectl get jobs -l example.jobstream.dev/retries
//
//	retries.go       the function: what it remembers (Observe) and what it wants (Plan)
//	adapter.go       its effect, the Actor that carries it out, and how it gets its facts
//	retries_test.go  the laws of every function, and what it decides
//	run_test.go      it works: beside the Job function, on a real API server and a real JetStream
//
// docs/contributing.md has the checklist for a function that the reconciler itself runs.
package function

import (
	"strconv"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Name is the function's.
const Name = "retries"

// Label has how many Pods of the Job have failed so far, as its status counts them. A Job without failures does not get it.
const Label = "example.jobstream.dev/retries"

// State is what the function remembers of one Job: the newest observation of it, as far as it matters here.
type State struct {
	Name    string
	Version uint64 // resourceVersion of the observation, 0 before the first
	Failed  int32  // status.failed
	Label   string // value of Label, "" where the Job does not have it
	Gone    bool   // the Job is deleted, and its UID never comes again
}

// New returns the function.
func New() fn.Function[State] {
	return fn.Function[State]{
		Name:    Name,
		Version: 1,
		Wakes:   []events.Type{events.TypeJobObserved, events.TypeJobListed, events.TypeJobGone},
		Observe: observe,
		Plan:    plan,
		Rests:   func(s State) bool { return len(wants(s)) == 0 },
	}
}

func observe(s State, e events.Event) State {
	switch e := e.(type) {
	case events.JobObserved:
		return see(s, e.Job)
	case events.JobListed:
		if e.Job != nil {
			return see(s, *e.Job)
		}
	case events.JobGone:
		return State{Gone: true}
	}
	return s
}

// see ignores an observation that is older than the one remembered. One observation is all that Plan needs, so an empty state takes
// no inventory: the trigger tells of each Job when it starts, and every ten minutes.
func see(s State, j events.Job) State {
	if s.Gone || j.Version < s.Version {
		return s
	}
	return State{Name: j.Name, Version: j.Version, Failed: j.Status.Failed, Label: j.Labels[Label]}
}

// plan has no clock and no use for one. It wants the label again and again until an observation shows it.
func plan(s State, _ time.Time) (State, []effect.Effect) { return s, wants(s) }

func wants(s State) []effect.Effect {
	value := ""
	if s.Failed > 0 {
		value = strconv.Itoa(int(s.Failed))
	}
	if s.Gone || s.Version == 0 || s.Label == value {
		return nil
	}
	return []effect.Effect{SetLabel{Job: s.Name, Version: s.Version, Value: value}}
}
