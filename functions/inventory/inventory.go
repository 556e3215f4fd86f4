// Package inventory is what a state remembers of lists of the cluster: whether one has been taken for it (Inventory, a part of every
// function's state), and up to which version lists of many Pods have been folded into it (ListVersions, of the Job function's).
//
// A state that is empty, because it is new or has been lost, decides nothing until it has taken inventory: it requests a snapshot
// under an ID of its own, because the answer to a request of a lost state proves nothing.
//
//	event that needs it --> NeedsSync --Request--> Asked --the snapshot with that ID--> Known
//	unreadable message  ----------------------------------> Unread --Request--> the snapshot with that ID
package inventory

import (
	"strconv"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Inventory is embedded in a State.
type Inventory struct {
	// Name is the object's, from any observation of it or of what it owns. It lets the inventory list one name instead of the
	// cluster.
	Name string
	// Asked is the ID of the inventory that the State waits for, or began with. It distinguishes the State from a lost one.
	Asked string
	// NeedsSync reports whether an event was observed that needs the inventory.
	NeedsSync bool
	// Known reports whether the inventory has been taken.
	Known bool
	// Unread is the ID of the inventory that is taken because a message could not be read, "" if every message could be. The State
	// stays: the snapshot is compared with it.
	Unread string `cbor:",omitempty"`
}

// Learn remembers the name of the object that the event is about, once one has it.
func (i *Inventory) Learn(e events.Event) {
	if i.Name != "" {
		return
	}
	switch e := e.(type) {
	case events.JobObserved:
		i.Name = e.Job.Name
	case events.JobGone:
		i.Name = e.Name
	case events.JobListed:
		i.Name = e.Name
	case events.JobPartListed:
		i.Name = e.Name
	case events.PodObserved:
		i.Name = e.Pod.Owner
	case events.PodGone:
		i.Name = e.Pod.Owner
	case events.ScheduledJobObserved:
		i.Name = e.ScheduledJob.Name
	case events.ScheduledJobGone:
		i.Name = e.Name
	case events.ScheduleListed:
		i.Name = e.Name
	}
}

// AskedAt returns when the inventory was requested that the State waits for, or began with; the zero time if none was.
func (i Inventory) AskedAt() time.Time {
	n, err := strconv.ParseInt(i.Asked, 36, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Requested reports whether the snapshot with that ID is the one that this State has requested.
func (i Inventory) Requested(id string) bool { return i.Asked != "" && id == i.Asked }

// Missed notes that a message could not be read. The same timer requests the same inventory.
func (i *Inventory) Missed(timer events.TimerFired) {
	i.Unread = events.Unread + "-" + strconv.FormatInt(timer.At.UnixNano(), 36)
}

// Compared notes that the snapshot with that ID has been compared with the State.
func (i *Inventory) Compared(id string) {
	if i.Unread == id {
		i.Unread = ""
	}
}

// Request requests the inventory that is needed, if any. An empty State needs one only after an event that may need it. Otherwise
// the late deletion of an object that was settled long ago would cost a list of the whole cluster.
func (i *Inventory) Request(now time.Time) []effect.Effect {
	id := i.Unread
	if !i.Known && i.NeedsSync {
		if i.Asked == "" {
			i.Asked = strconv.FormatInt(now.UnixNano(), 36)
		}
		id = i.Asked
	}
	if id == "" {
		return nil
	}
	return []effect.Effect{effect.TakeInventory{ID: id, Job: i.Name}}
}
