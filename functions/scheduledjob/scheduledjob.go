// Package scheduledjob is the ScheduledJob function: it decides once, and in order, what becomes of each nominal time of one
// ScheduledJob, and creates the Jobs. Start reading at plan.go.
//
//	observe.go   folds events into the state  plan.go     the order of decisions
//	state.go     the state itself             cover.go    which nominal times have come
//	timetable.go when Jobs are due            queue.go    times that wait for an earlier Job
//	start.go     concurrency, deadlines       status.go   counters, conditions, Events
//	history.go   which Jobs are kept          child.go    builds the Job of a nominal time
//	recall.go    Jobs found after the fact    room.go     when the bus confirms nothing
//
// The life of a nominal time:
//
//	passed --covered--> due --intended--> its Job is observed ------> verdict --written--> in the status --announced--> on the bus
//	          |          |       '------ or found not to exist ----> verdict
//	          |          '-------------- too late, overlap --------> verdict
//	          '------------------------- superseded, suspended ----> verdict
//
// The decision to create a Job is committed before the Job is created, so that every worker creates the same Jobs. The Job's name
// is a hash of the nominal time, so that it is created once. The rest is recorded in the cluster: one write moves
// status.decidedUntil past the time, adds its Job to status.active, and its verdict to status.recent. Only verdicts in the status
// are announced, and each stays there until the bus has confirmed it. So the announced verdicts never contradict the cluster, and
// none is missing, unless the bus accepts nothing for more than a minute while there are more verdicts than a status holds.
package scheduledjob

import (
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Name is the function's name.
const Name = "scheduledjob"

// Zones returns a time zone by its IANA name; "" is UTC. It is the only input of the function besides its state, the events and
// the time: the rules of time zones are data that is compiled into the program. The error is written for users.
type Zones func(name string) (*time.Location, error)

// New returns the ScheduledJob function.
func New(zones Zones) fn.Function[State] {
	return fn.Function[State]{
		Name:    Name,
		Version: 15,
		Wakes: []events.Type{events.TypeScheduledJobObserved, events.TypeScheduledJobGone, events.TypeScheduleListed, events.TypeScheduleDue,
			events.TypeRunObserved, events.TypeRunGone, events.TypeRunMissing, events.TypeAnnounced, events.TypeTimerFired, events.TypeEffectRefused},
		Observe: observe,
		Plan:    func(s State, now time.Time) (State, []effect.Effect) { return plan(s, zones, now) },
		Rests:   rests,
		Valid:   State.valid,
	}
}
