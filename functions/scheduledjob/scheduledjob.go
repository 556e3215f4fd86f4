// Package scheduledjob is the ScheduledJob function: it decides what becomes of each nominal time of one ScheduledJob, once,
// in order, and makes the Jobs. Start reading at plan.go.
//
//	observe.go   what we remember            plan.go     the order of decisions
//	state.go     the memory itself           cover.go    which nominal times have come
//	start.go     concurrency, deadlines      status.go   counters, conditions, Events
//	history.go   which Jobs are kept         child.go    the Job that a nominal time becomes
//	recall.go    Jobs that turn up           room.go     a bus that confirms nothing
//
// A nominal time goes one way:
//
//	passed --covered--> due --intended--> its Job is seen ----------> verdict --written--> in the status --announced--> on the bus
//	          |          |       '------ or found not to exist ----> verdict
//	          |          '-------------- too late, overlap --------> verdict
//	          '------------------------- superseded, suspended ----> verdict
//
// What is intended is committed before its Job is made, so that every worker makes the same Jobs; the Job's name is a hash of
// the nominal time, so that it is made once. The cluster remembers the rest: one write moves status.decidedUntil past the
// time, puts its Job into status.active, and its verdict among status.recent. Only what stands there is announced, and it
// stays there until it has been: so the ledger never says what the cluster does not, and misses nothing, unless the bus takes
// nothing for more than a minute while there are more verdicts than a status holds.
package scheduledjob

import (
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Name is the function's.
const Name = "scheduledjob"

// Zones finds a time zone by its IANA name; "" is UTC. It is the only thing that the function is given beside its state:
// the rules of time zones are data that comes with the program. The error is for people.
type Zones func(name string) (*time.Location, error)

// New is the ScheduledJob function.
func New(zones Zones) fn.Function[State] {
	return fn.Function[State]{
		Name:    Name,
		Version: 11,
		Wakes: []events.Type{events.TypeScheduledJobObserved, events.TypeScheduledJobGone, events.TypeScheduleListed, events.TypeScheduleDue,
			events.TypeRunObserved, events.TypeRunGone, events.TypeRunMissing, events.TypeAnnounced, events.TypeTimerFired, events.TypeEffectRefused},
		Observe: observe,
		Plan:    func(s State, now time.Time) (State, []effect.Effect) { return plan(s, zones, now) },
		Rests:   rests,
		Valid:   State.valid,
	}
}
