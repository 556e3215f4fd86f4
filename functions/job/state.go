package job

import (
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/inventory"
	"github.com/jobstream/jobstream/functions/outbox"
)

// State is the memory of one Job. Losing it is safe: an empty State takes inventory before anything is decided. Its parts have a
// file each; valid.go has their laws.
//
// Observe and Plan own the State that they are given and change its maps in place.
type State struct {
	inventory.Inventory
	// Gone reports whether the Job no longer exists. That is final, since keys are UIDs.
	Gone bool
	// Job is the newest observation of it.
	Job events.Job
	// AdoptsNone reports whether the newest snapshot excluded the Job from adoption: too many Jobs have selectors of their own.
	AdoptsNone bool `cbor:",omitempty"`

	Table
	Pacing

	// Outbox is what subscribers have to be told of the Job.
	Outbox outbox.Outbox
	// LastFailure is how the Pod failed that failed last, as far as this State has observed; nil if none did.
	LastFailure *events.PodFailure `cbor:",omitempty"`
	// Reported are the serials of Pods whose failure a podFailurePolicy ignores and a status write has reported, if failures
	// count per index. They are reported for metrics only: after a loss of the State, some are reported twice.
	Reported intervals.Set

	limits Limits // those of this process, not saved
}

// lookAgain forgets the Pods that filled the state, so that inventory finds those that were passed over. Effects that the API
// server has refused keep their delays.
func (s State) lookAgain() State {
	return State{Inventory: inventory.Inventory{Name: s.Name, NeedsSync: true}, Outbox: s.Outbox, Pacing: Pacing{Waits: s.Waits, Overgrown: s.Overgrown}, limits: s.limits}
}
