// Package effect is the vocabulary of things that shall happen: imperatives, decided by Plan and done by an adapter.
//
// An effect is a value. It carries names and numbers, never objects, so that no Pod template, environment or secret
// travels with it. Every effect may be done twice, and late: each names what must still be true for it to have any
// effect at all (a name that only one Pod can have, a UID, a resourceVersion).
package effect

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// Effect is one thing to do for one key. The set is closed.
type Effect interface {
	// Kind is the effect's name in the vocabulary, such as "CreatePod".
	Kind() string
	// String is one short word or two for logs and traces, such as "CreatePod#3".
	String() string
	effect()
}

type (
	// CreatePod makes the Pod with that serial from the Job's template. A name that is taken by that very Pod answers
	// with a sight of it; a name that is taken by a stranger is refused with reason AlreadyExists.
	CreatePod struct {
		Job    string // the Job's name
		Name   string // derived from the Job's UID and the serial
		Serial int
		Index  int // completion index, events.NoIndex where the Job is not Indexed
	}

	// FindPod asks whether a Pod that was to be made, and is no longer wanted, has been made: answered by a sight of it, or
	// by a PodGone with its serial and no UID.
	FindPod struct {
		Name   string
		Serial int
	}

	// ReleasePod takes our finalizer off. Precondition: the UID.
	ReleasePod struct {
		Name string
		UID  types.UID
	}

	// HoldPod puts our finalizer back on a Pod that lost it before it was counted. Precondition: UID and Version.
	HoldPod struct {
		Name    string
		UID     types.UID
		Version uint64
	}

	// DeletePod deletes the Pod. With Release, it first takes the finalizer off, so that the deletion counts for nothing,
	// and does nothing at all unless the Pod is still at Version: a Pod that succeeded meanwhile keeps its success.
	DeletePod struct {
		Name    string
		UID     types.UID
		Version uint64
		Release bool
	}

	// WriteJobStatus puts the status and the two annotations that belong to it. Precondition: UID and Version. The
	// Reports are made after the write has succeeded, so that nobody hears of what did not happen.
	WriteJobStatus struct {
		Job        string
		Version    uint64
		Status     batchv1.JobStatus
		NextSerial int
		Backoff    events.Backoff
		Reports    []Report
	}

	// SetTimer makes TimerFired{Name} happen at At or a little earlier; a timer of the same name is replaced.
	SetTimer struct {
		Name string
		At   time.Time
	}

	// TakeInventory asks for a JobListed with this ID whose two lists begin after now. Job is the name, "" where unknown.
	TakeInventory struct {
		ID  string
		Job string
	}
)

// Report is a Kubernetes Event about the Job.
type Report struct {
	Warning bool
	Reason  string // upper camel case, upstream's word where it has one
	Message string
}

// Kind implements Effect.
func (CreatePod) Kind() string { return "CreatePod" }

// Kind implements Effect.
func (FindPod) Kind() string { return "FindPod" }

// Kind implements Effect.
func (ReleasePod) Kind() string { return "ReleasePod" }

// Kind implements Effect.
func (HoldPod) Kind() string { return "HoldPod" }

// Kind implements Effect.
func (DeletePod) Kind() string { return "DeletePod" }

// Kind implements Effect.
func (WriteJobStatus) Kind() string { return "WriteJobStatus" }

// Kind implements Effect.
func (SetTimer) Kind() string { return "SetTimer" }

// Kind implements Effect.
func (TakeInventory) Kind() string { return "TakeInventory" }

// String implements Effect.
func (e CreatePod) String() string {
	if e.Index != events.NoIndex {
		return fmt.Sprintf("CreatePod %s (serial %d, index %d)", e.Name, e.Serial, e.Index)
	}
	return fmt.Sprintf("CreatePod %s (serial %d)", e.Name, e.Serial)
}

// String implements Effect.
func (e FindPod) String() string { return "FindPod " + e.Name }

// String implements Effect.
func (e ReleasePod) String() string { return "ReleasePod " + e.Name }

// String implements Effect.
func (e HoldPod) String() string { return fmt.Sprintf("HoldPod %s@%d", e.Name, e.Version) }

// String implements Effect.
func (e DeletePod) String() string {
	if e.Release {
		return fmt.Sprintf("DeletePod %s@%d, released first", e.Name, e.Version)
	}
	return "DeletePod " + e.Name
}

// String implements Effect.
func (e WriteJobStatus) String() string {
	s := e.Status
	out := fmt.Sprintf("WriteJobStatus @%d active=%d", e.Version, s.Active)
	if s.Succeeded > 0 {
		out += fmt.Sprintf(" succeeded=%d", s.Succeeded)
	}
	if s.Failed > 0 {
		out += fmt.Sprintf(" failed=%d", s.Failed)
	}
	if s.CompletedIndexes != "" {
		out += " completed=" + s.CompletedIndexes
	}
	if u := s.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		out += fmt.Sprintf(" uncounted=%v/%v", u.Succeeded, u.Failed)
	}
	if s.Terminating != nil && *s.Terminating > 0 {
		out += fmt.Sprintf(" terminating=%d", *s.Terminating)
	}
	for _, c := range s.Conditions {
		if c.Status == "True" {
			out += " " + string(c.Type)
			if c.Reason != "" {
				out += "(" + c.Reason + ")"
			}
		}
	}
	return out
}

// String implements Effect.
func (e SetTimer) String() string {
	return "SetTimer " + e.Name + " " + e.At.UTC().Format(time.TimeOnly)
}

// String implements Effect.
func (e TakeInventory) String() string { return "TakeInventory" }

func (CreatePod) effect()      {}
func (FindPod) effect()        {}
func (ReleasePod) effect()     {}
func (HoldPod) effect()        {}
func (DeletePod) effect()      {}
func (WriteJobStatus) effect() {}
func (SetTimer) effect()       {}
func (TakeInventory) effect()  {}
