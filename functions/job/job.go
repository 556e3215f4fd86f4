// Package job is the Job function: it tracks the Pods of one batch/v1 Job to its end by the algorithm of KEP-2307, for
// NonIndexed, Indexed and work-queue Jobs. Start reading at plan.go.
//
//	observe.go     folds events into the state    plan.go       the order of decisions
//	listed.go      folds snapshots                claim.go      which Pods are the Job's
//	state.go       the state and its parts        tally.go      KEP-2307 step 1: counts the Pods
//	table.go       the Pods that are not settled  verdict.go    whether the Job is over
//	serial.go      which row is a Pod's           fleet.go      how many Pods, and which
//	settled.go     Pods that are settled          command.go    what becomes of each row
//	pacing.go      what is delayed                tracking.go   KEP-2307 steps 2 to 4
//	ends.go        what ends of Pods count as     finish.go     conditions
//	waiting.go     Pods that do not start         lastfailure.go how a Pod failed
//	overgrown.go   states that are too large      report.go     Kubernetes Events, metrics
//	valid.go       what holds for every state     leftovers.go  what is removed at the end
//	indexed.go     completion indexes             parameters.go per-completion values
//	perindex.go    backoffLimitPerIndex           relevance.go  what the adapters may leave out
//
// A Pod is identified by its serial, which is encoded in its name:
//
//	intended --seen--> running --ended--> listed in status --finalizer removed--> counted, settled
//	    |                 |                                                           ^
//	    '--refused--------+--surplus: finalizer removed, deleted, counts for nothing--'
package job

import (
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Name is the function's name, in keys and subjects.
const Name = "job"

// New returns the Job function with the given limits.
func New(l Limits) fn.Function[State] {
	return fn.Function[State]{
		Name:    Name,
		Version: 20,
		Wakes: []events.Type{events.TypeJobObserved, events.TypeJobGone, events.TypeJobListed, events.TypeJobPartListed, events.TypePodObserved,
			events.TypePodGone, events.TypeTimerFired, events.TypeEffectRefused, events.TypeParametersObserved, events.TypeAnnounced},
		Observe: func(s State, e events.Event) State { s.limits = l; return observe(s, e) },
		Plan:    func(s State, now time.Time) (State, []effect.Effect) { s.limits = l; return plan(s, now) },
		Rests:   func(s State) bool { s.limits = l; return rests(s) },
		Valid:   State.valid,
	}
}

// Limits are the settings that operators change by flags.
type Limits struct {
	// PodBackoff is the delay of Pod creation after failed Pods.
	PodBackoff backoff.Policy
	// MaxUncounted is the most UIDs and indexes that one status write adds: 1 to 500.
	MaxUncounted int
	// MaxPodChanges is the most Pods that one plan creates or deletes: 1 or more.
	MaxPodChanges int
	// DeleteExpired deletes finished Jobs once their ttlSecondsAfterFinished is over: for clusters whose kube-controller-manager
	// does not do it. It does no harm if kube-controller-manager does it, too.
	DeleteExpired bool
	// Reannounce is the age up to which a start or an end is announced again by a function that has lost its state and so does
	// not know whether it was announced: 0 to events.ReannounceWindow.
	Reannounce time.Duration
	// AnnouncePods announces the end of each Pod, too.
	AnnouncePods bool
}

// DefaultLimits returns the limits of Kubernetes 1.36.
func DefaultLimits() Limits {
	return Limits{PodBackoff: backoff.Pods, MaxUncounted: 500, MaxPodChanges: 500, Reannounce: events.ReannounceWindow}
}
