// Package job is the Job function: it tracks the Pods of one batch/v1 Job to its end by the algorithm of KEP-2307, for
// NonIndexed, Indexed and work-queue Jobs. Start reading at plan.go.
//
//	observe.go   what we remember            plan.go      the order of decisions
//	state.go     the memory itself           tracking.go  KEP-2307 steps 1 to 4
//	indexed.go   completion indexes          failure.go   backoffLimit, exponential backoff
//	fleet.go     how many Pods, which        finish.go    conditions and Events
//	pod.go       the Pod that a serial becomes
//
// A Pod is known by its serial, which is in its name:
//
//	intended --seen--> running --ended--> listed in status --released--> counted, settled
//	    |                 |                                                  ^
//	    '--refused--------+--doomed: released, deleted, counts for nothing---'
package job

import (
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/fn"
)

// Function is the Job function.
var Function = fn.Function[State]{
	Name:    "job",
	Version: 1,
	Wakes: []events.Type{events.TypeJobObserved, events.TypeJobGone, events.TypeJobListed, events.TypePodObserved,
		events.TypePodGone, events.TypeTimerFired, events.TypeEffectRefused},
	Observe: observe,
	Plan:    plan,
	Rests:   rests,
}
