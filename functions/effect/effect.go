// Package effect defines everything that a function can ask for: imperatives that Plan decides on and an adapter carries out.
//
// An effect is a value. It carries names and numbers, never objects, so that no Pod template, environment or secret travels with
// it. Every effect may be carried out twice, and late. Each therefore names its precondition: a name that only one Pod can have,
// a UID, a resourceVersion.
package effect

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// Effect is one thing to do for one key. internal/cluster/act and the engine can carry out those of this package and no others. A
// function that needs another one brings the engine.Actor for it (examples/function). An Actor answers an effect that it does not
// know with an error.
type Effect interface {
	// Kind returns the effect's name, such as "CreatePod".
	Kind() string
	// String returns a short description for logs and traces, such as "CreatePod pi-x7k2p (serial 3)".
	String() string
}

type (
	// CreatePod creates the Pod with that serial from the Job's template. If that very Pod has the name already, the answer is an
	// observation of it; if another Pod has the name, the effect is refused with reason AlreadyExists.
	CreatePod struct {
		Job    string // the Job's name
		Name   string // derived from the Job's UID and the serial
		Serial int
		Index  int // completion index, events.NoIndex if the Job is not Indexed
		// Generation is the Job's: the template must be at least this new.
		Generation int64
		// PerIndex reports whether failures are counted per index, in annotations of the Pods. IndexFailures and
		// IndexIgnoredFailures are the numbers of earlier failures of the index.
		PerIndex                            bool
		IndexFailures, IndexIgnoredFailures int32
		// Parameters names the ConfigMap with a value of each variable for this index, "" for none.
		Parameters string
	}

	// FindPod looks for a Pod that was intended and is no longer wanted, because it may have been created. The answer is an
	// observation of it, or a PodGone with its serial and without a UID.
	FindPod struct {
		Name   string
		Serial int
	}

	// RemoveFinalizer removes the tracking finalizer. Precondition: the UID.
	RemoveFinalizer struct {
		Name string
		UID  types.UID
	}

	// AddFinalizer restores the tracking finalizer of a Pod that lost it before it was counted. Preconditions: UID and Version.
	AddFinalizer struct {
		Name    string
		UID     types.UID
		Version uint64
	}

	// AdoptPod makes the Pod the Job's own in one patch: owner reference, label, serial, and with Hold the finalizer. A Pod that
	// the Job owns already gets what it lacks. Preconditions: UID and Version of the Pod; and the API server confirms that the
	// Job exists under the key's UID and is not being deleted.
	AdoptPod struct {
		Job     string
		Name    string
		UID     types.UID
		Version uint64
		Serial  int
		Hold    bool
	}

	// ReleasePod removes owner reference, finalizer and label from a Pod that the Job's selector no longer matches. The answer is
	// a PodGone, since the Pod no longer belongs to the Job. Precondition: the UID.
	ReleasePod struct {
		Name string
		UID  types.UID
	}

	// DeletePod deletes the Pod. With RemoveFinalizer it removes the finalizer first, so that the deletion counts for nothing,
	// and does nothing at all unless the Pod is still at Version: a Pod that succeeded meanwhile keeps its success.
	DeletePod struct {
		Name            string
		UID             types.UID
		Version         uint64 // 0 for any
		RemoveFinalizer bool
		// Report replaces the usual Kubernetes Event after the deletion; zero for the usual one.
		Report Report
	}

	// WriteJobStatus writes the status and the annotations that belong to it. Preconditions: UID and Version. The Reports are
	// made only after the write has succeeded, so that users never read of a change that did not happen.
	WriteJobStatus struct {
		Job        string
		Version    uint64
		Status     batchv1.JobStatus
		NextSerial int
		Backoff    events.Backoff
		// LastFailure is how the Pod failed that failed last, nil if none did.
		LastFailure *events.PodFailure
		// FailedIndexExits are how the failed indexes ended, as far as the Job keeps that.
		FailedIndexExits []events.IndexExit
		Reports          []Report
		// Handled is the number of failures that this status accounts for and a podFailurePolicy has handled, by action, for
		// metrics.
		Handled map[batchv1.PodFailurePolicyAction]int
	}

	// DeleteJob deletes the Job in the foreground, with its Pods, because its time to live is over. Preconditions: the key's UID,
	// and Version.
	DeleteJob struct {
		Job     string
		Version uint64
	}

	// ReadParameters reads the ConfigMap of that name. The answer is a ParametersObserved, or a refusal that explains what is
	// wrong with it.
	ReadParameters struct{ ConfigMap string }

	// SetTimer schedules TimerFired{Name} for At or a little earlier, and replaces a timer of the same name.
	SetTimer struct {
		Name string
		At   time.Time
	}

	// TakeInventory requests a JobListed with this ID whose two lists begin after now. Job is the name, "" if unknown.
	TakeInventory struct {
		ID  string
		Job string
	}
)

// InvalidParameters is the reason of a refusal because of the ConfigMap with the per-completion values.
const InvalidParameters = "InvalidParameters"

// SaveState is the refused effect, and StateTooLarge the reason, if the bus does not store the state that a function has decided
// on. The engine reports this; no function returns such an effect. A function that receives the refusal has to shrink its state.
const (
	SaveState     = "SaveState"
	StateTooLarge = "StateTooLarge"
)

// Unconfirmed returns the refusal of an Announce that the bus has not confirmed: the event may or may not be stored.
func Unconfirmed(err error, at time.Time) events.EffectRefused {
	return events.EffectRefused{Effect: KindAnnounce, Serial: events.NoSerial, Reason: "Unconfirmed", Message: err.Error(), At: at}
}

// Report is a Kubernetes Event about the Job.
type Report struct {
	Warning bool
	Reason  string // upper camel case, upstream's word if it has one
	Message string
}

// Shared reports whether keys that want the effect at the same time share one request, so that each of them waits for the others.
func Shared(e Effect) bool {
	_, shared := e.(TakeInventory)
	return shared
}

// Begins reports whether the effect begins something that soon has more to tell: a Pod that will start and end, or the Job of a schedule.
func Begins(e Effect) bool {
	switch e.(type) {
	case CreatePod, CreateJob:
		return true
	}
	return false
}

// Inquires reports whether the effect asks for an inventory, which has to be decided upon before the next fact: if the function created Pods
// from a memory that is lost, it finds them again only if it decides the same.
func Inquires(e Effect) bool {
	_, inquires := e.(TakeInventory)
	return inquires
}

// Subject returns the name of the one object that a refusal of the effect is about: the Pod or Job to be changed, or the Job that
// a ScheduledJob creates; "" for other effects.
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
	for i, x := range e.FailedIndexExits {
		out += map[bool]string{true: " exits=", false: ","}[i == 0] + x.String()
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
