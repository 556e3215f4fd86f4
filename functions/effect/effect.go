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

// Effect is one thing to do for one key. Those of this package are all that internal/cluster/act and the engine can do; a function that
// wants another brings the engine.Actor that does it (examples/function), and an Actor answers an effect that it does not know by an error.
type Effect interface {
	// Kind is the effect's name in the vocabulary, such as "CreatePod".
	Kind() string
	// String is one short word or two for logs and traces, such as "CreatePod#3".
	String() string
}

type (
	// CreatePod makes the Pod with that serial from the Job's template. A name that is taken by that very Pod answers
	// with an observation of it; a name that is taken by a stranger is refused with reason AlreadyExists.
	CreatePod struct {
		Job    string // the Job's name
		Name   string // derived from the Job's UID and the serial
		Serial int
		Index  int // completion index, events.NoIndex where the Job is not Indexed
		// Generation is the Job's: the template must be at least as new.
		Generation int64
		// PerIndex says that failures are counted per index, in annotations of the Pods: IndexFailures and
		// IndexIgnoredFailures are how often the index has failed before.
		PerIndex                            bool
		IndexFailures, IndexIgnoredFailures int32
		// Parameters names the ConfigMap that has a value for this index of each of its variables, "" for none.
		Parameters string
	}

	// FindPod asks whether a Pod that was to be made, and is no longer wanted, has been made: answered by an observation of it, or
	// by a PodGone with its serial and no UID.
	FindPod struct {
		Name   string
		Serial int
	}

	// RemoveFinalizer takes our finalizer off. Precondition: the UID.
	RemoveFinalizer struct {
		Name string
		UID  types.UID
	}

	// AddFinalizer puts our finalizer back on a Pod that lost it before it was counted. Precondition: UID and Version.
	AddFinalizer struct {
		Name    string
		UID     types.UID
		Version uint64
	}

	// AdoptPod makes the Pod the Job's own, in one patch: owner reference, label, serial, and with Hold the finalizer. A Pod
	// that is owned already gets what it lacks. Preconditions: UID and Version of the Pod, and a live look at the Job:
	// that it exists under the key's UID and is not being deleted.
	AdoptPod struct {
		Job     string
		Name    string
		UID     types.UID
		Version uint64
		Serial  int
		Hold    bool
	}

	// ReleasePod takes owner reference, finalizer and label off a Pod that the Job's selector no longer matches: answered by a
	// PodGone, since it is none of the Job's any more. Precondition: the UID.
	ReleasePod struct {
		Name string
		UID  types.UID
	}

	// DeletePod deletes the Pod. With RemoveFinalizer, it first takes the finalizer off, so that the deletion counts for nothing,
	// and does nothing at all unless the Pod is still at Version: a Pod that succeeded meanwhile keeps its success.
	DeletePod struct {
		Name            string
		UID             types.UID
		Version         uint64 // 0 for any
		RemoveFinalizer bool
		// Report is made instead of the usual one after the Pod has been told to end; zero for the usual one.
		Report Report
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
		// Handled is how many failures that this status accounts for a podFailurePolicy has handled, by its action, for metrics.
		Handled map[batchv1.PodFailurePolicyAction]int
	}

	// DeleteJob deletes the Job and then its Pods in the foreground, because its time to live is over. Preconditions: the
	// key's UID, and Version.
	DeleteJob struct {
		Job     string
		Version uint64
	}

	// ReadParameters asks for a ParametersObserved, or a refusal that says what is wrong with the ConfigMap of that name.
	ReadParameters struct{ ConfigMap string }

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

// InvalidParameters is the reason of a refusal because of the ConfigMap of per-completion values.
const InvalidParameters = "InvalidParameters"

// SaveState is the effect that is refused, and StateTooLarge the reason, where the bus does not take the state that a function has
// decided on: the engine's own doing, and nothing that a function asks for. Whoever hears of it remembers less.
const (
	SaveState     = "SaveState"
	StateTooLarge = "StateTooLarge"
)

// Unconfirmed is the refusal of an Announce that the bus has not confirmed: the event may have been stored or not.
func Unconfirmed(err error, at time.Time) events.EffectRefused {
	return events.EffectRefused{Effect: KindAnnounce, Serial: events.NoSerial, Reason: "Unconfirmed", Message: err.Error(), At: at}
}

// Report is a Kubernetes Event about the Job.
type Report struct {
	Warning bool
	Reason  string // upper camel case, upstream's word where it has one
	Message string
}

// Subject is the name of the one object that a refusal of the effect is about: of the Pod or Job that is to be changed, or of
// the Job that a ScheduledJob makes; "" for other effects.
func Subject(e Effect) (name string) {
	switch e := e.(type) {
	case RemoveFinalizer:
		return e.Name
	case AddFinalizer:
		return e.Name
	case AdoptPod:
		return e.Name
	case ReleasePod:
		return e.Name
	case DeletePod:
		return e.Name
	case DeleteRun:
		return e.Name
	case CreateJob:
		return e.Name
	}
	return ""
}

// String implements Effect.
func (e CreatePod) String() string {
	out := fmt.Sprintf("CreatePod %s (serial %d", e.Name, e.Serial)
	if e.Index != events.NoIndex {
		out += fmt.Sprintf(", index %d", e.Index)
	}
	if e.IndexFailures > 0 {
		out += fmt.Sprintf(", failed %d times", e.IndexFailures)
	}
	if e.IndexIgnoredFailures > 0 {
		out += fmt.Sprintf(", failed %d times and was ignored", e.IndexIgnoredFailures)
	}
	return out + ")"
}

// String implements Effect.
func (e FindPod) String() string { return "FindPod " + e.Name }

// String implements Effect.
func (e RemoveFinalizer) String() string { return "RemoveFinalizer " + e.Name }

// String implements Effect.
func (e AddFinalizer) String() string { return fmt.Sprintf("AddFinalizer %s@%d", e.Name, e.Version) }

// String implements Effect.
func (e AdoptPod) String() string {
	out := fmt.Sprintf("AdoptPod %s@%d (serial %d)", e.Name, e.Version, e.Serial)
	if e.Hold {
		out += " and hold it"
	}
	return out
}

// String implements Effect.
func (e ReleasePod) String() string { return "ReleasePod " + e.Name }

// String implements Effect.
func (e DeletePod) String() string {
	out := "DeletePod " + e.Name
	if e.Version != 0 {
		out += fmt.Sprintf("@%d", e.Version)
	}
	if e.RemoveFinalizer {
		out += ", finalizer removed first"
	}
	if e.Report != (Report{}) {
		out += ": " + e.Report.Message
	}
	return out
}

// String implements Effect.
func (e DeleteJob) String() string { return fmt.Sprintf("DeleteJob %s@%d", e.Job, e.Version) }

// String implements Effect.
func (e ReadParameters) String() string { return "ReadParameters " + e.ConfigMap }

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
	if s.FailedIndexes != nil && *s.FailedIndexes != "" {
		out += " failedIndexes=" + *s.FailedIndexes
	}
	if u := s.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		out += fmt.Sprintf(" uncounted=%v/%v", u.Succeeded, u.Failed)
	}
	if s.Terminating != nil && *s.Terminating > 0 {
		out += fmt.Sprintf(" terminating=%d", *s.Terminating)
	}
	if s.StartTime == nil {
		out += " startTime=nil"
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
