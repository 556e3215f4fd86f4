package effect

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

type (
	// CreateJob creates the Job of one nominal time from the ScheduledJob's template. If that very Job has the name already, the
	// answer is an observation of it; if another Job has the name, the effect is refused with reason AlreadyExists.
	CreateJob struct {
		ScheduledJob string // its name
		Name         string // derived from that and the nominal time
		Nominal      time.Time
		// Generation is the ScheduledJob's: the template must be at least this new.
		Generation int64
	}

	// FindRun looks for a Job that was intended and is no longer wanted, because it may have been created. The answer is a
	// RunObserved, or a RunMissing with the same ID.
	FindRun struct {
		Name string
		ID   string
	}

	// WriteScheduleStatus writes the status. Preconditions: UID and Version. The Reports are made after the write has succeeded.
	WriteScheduleStatus struct {
		ScheduledJob string
		Version      uint64
		Status       v1alpha1.ScheduledJobStatus
		Reports      []Report
		// Unannounced are verdicts that leave the status without having been announced, because the bus has accepted none.
		Unannounced []events.TickDecided
	}

	// DeleteScheduledJob deletes the ScheduledJob and its Job, because its time to live is over. Preconditions: the key's UID,
	// and Version.
	DeleteScheduledJob struct {
		ScheduledJob string
		Version      uint64
	}

	// DeleteRun deletes a Job of the ScheduledJob. Preconditions: the UID, and Version if it is not 0. If the Job is at another
	// version, the answer is an observation of it: it may have finished meanwhile, and its result must not be lost.
	DeleteRun struct {
		Name    string
		UID     types.UID
		Version uint64 // 0 for any
		// Foreground keeps the Job until its Pods are gone.
		Foreground bool
	}

	// Announce publishes an event for subscribers. The answer is an Announced once the bus has confirmed it.
	Announce struct{ Event events.Public }

	// ReportDropped reports to the operator that Count announcements were dropped because more were due than a state holds. The
	// answer is an Announced with its ID.
	ReportDropped struct {
		ID    string
		Count int
	}
)

// String implements Effect.
func (e CreateJob) String() string {
	return fmt.Sprintf("CreateJob %s (%s)", e.Name, e.Nominal.UTC().Format(time.RFC3339))
}

// String implements Effect.
func (e FindRun) String() string { return "FindRun " + e.Name }

// String implements Effect.
func (e WriteScheduleStatus) String() string {
	s := e.Status
	out := fmt.Sprintf("WriteScheduleStatus @%d", e.Version)
	if s.DecidedUntil != nil {
		out += " decidedUntil=" + s.DecidedUntil.UTC().Format(time.RFC3339)
	}
	if s.NextScheduleTime != nil {
		out += " next=" + s.NextScheduleTime.UTC().Format(time.RFC3339)
	}
	for _, ref := range s.Active {
		out += " active=" + ref.Name
	}
	for _, n := range []struct {
		name  string
		count int64
	}{{"queued", int64(s.Queued)}, {"successful", s.Successful}, {"failed", s.Failed}, {"missed", s.Missed}} {
		if n.count > 0 {
			out += fmt.Sprintf(" %s=%d", n.name, n.count)
		}
	}
	for _, c := range s.Conditions {
		if c.Status == "True" {
			out += fmt.Sprintf(" %s(%s)", c.Type, c.Reason)
		}
	}
	if n := len(e.Unannounced); n > 0 {
		out += fmt.Sprintf(" unannounced=%d", n)
	}
	return out
}

// String implements Effect.
func (e DeleteScheduledJob) String() string {
	return fmt.Sprintf("DeleteScheduledJob %s@%d", e.ScheduledJob, e.Version)
}

// String implements Effect.
func (e DeleteRun) String() string {
	out := "DeleteRun " + e.Name
	if e.Version != 0 {
		out += fmt.Sprintf("@%d", e.Version)
	}
	if e.Foreground {
		out += " and wait for its Pods"
	}
	return out
}

// String implements Effect.
func (e Announce) String() string { return "Announce " + e.Event.String() }

// String implements Effect.
func (e ReportDropped) String() string { return fmt.Sprintf("ReportDropped %d", e.Count) }
