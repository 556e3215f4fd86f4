// Package job is the Job function: it tracks the Pods of one batch/v1 Job to its end by the algorithm of KEP-2307, for
// NonIndexed, Indexed and work-queue Jobs. Start reading at plan.go.
//
//	observe.go   what we remember            plan.go      the order of decisions
//	listed.go    what a list tells us        tally.go     KEP-2307 step 1: what the Pods amount to
//	state.go     the memory itself
//	indexed.go   completion indexes          tracking.go  KEP-2307 steps 2 to 4
//	leftovers.go what is deleted at the end  failure.go   backoffLimit, exponential backoff
//	fleet.go     how many Pods, which        finish.go    conditions and Events
//	pod.go       the Pod that a serial becomes    outbox*.go   JobStart, JobFinish, PodFinish
//	valid.go     what is true of every memory
//	overgrown.go a memory that is too large       list_versions.go what lists have proved
//
// A Pod is known by its serial, which is in its name:
//
//	intended --seen--> running --ended--> listed in status --released--> counted, settled
//	    |                 |                                                  ^
//	    '--refused--------+--surplus: released, deleted, counts for nothing--'
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

// New is the Job function within the given limits.
func New(l Limits) fn.Function[State] {
	return fn.Function[State]{
		Name:    Name,
		Version: 16,
		Wakes: []events.Type{events.TypeJobObserved, events.TypeJobGone, events.TypeJobListed, events.TypeJobPartListed, events.TypePodObserved,
			events.TypePodGone, events.TypeTimerFired, events.TypeEffectRefused, events.TypeParametersObserved, events.TypeAnnounced},
		Observe: func(s State, e events.Event) State { s.limits = l; return observe(s, e) },
		Plan:    func(s State, now time.Time) (State, []effect.Effect) { s.limits = l; return plan(s, now) },
		Rests:   func(s State) bool { s.limits = l; return rests(s) },
		Valid:   State.valid,
	}
}

// Limits are what users tune by flags.
type Limits struct {
	// PodBackoff is how the creation of Pods waits for failed ones.
	PodBackoff backoff.Policy
	// MaxUncounted is the most UIDs and indexes that one status write adds: 1 to 500.
	MaxUncounted int
	// MaxPodChanges is the most Pods that one plan creates or deletes: 1 or more.
	MaxPodChanges int
	// DeleteExpired deletes finished Jobs when their ttlSecondsAfterFinished are over: for clusters where
	// kube-controller-manager does not do it. It does no harm where that does it, too.
	DeleteExpired bool
	// Reannounce is how long ago a Job may have started or finished to be announced by somebody who does not know whether it
	// was announced: 0 to events.ReannounceWindow.
	Reannounce time.Duration
	// AnnouncePods announces the end of each Pod, too.
	AnnouncePods bool
}

// DefaultLimits are those of Kubernetes 1.36.
func DefaultLimits() Limits {
	return Limits{PodBackoff: backoff.Pods, MaxUncounted: 500, MaxPodChanges: 500, Reannounce: events.ReannounceWindow}
}
