package history

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// mostTimes bounds the number of nominal times of one verdict, so that sums of them are numbers.
const mostTimes = 1 << 40

// States of a run besides those of progress.State.
const (
	missing = "Missing"
	active  = "Active"
	unknown = "unknown"
)

// Tick is a verdict on a nominal time, on a range of them, or on a Job that a user has started, and its run.
type Tick struct {
	events.TickDecided
	// Run is nil if no Job was created.
	Run *Run
}

// Run is what is known of a Job.
type Run struct {
	// Job is the Job.
	Job events.Reference
	// State is Complete, Failed or Missing once the Job has ended, before that what it does, and "" if that is not known.
	State string
	// Reason and Message explain it.
	Reason, Message string
	// Start and End are zero if they are not known.
	Start, End time.Time
}

// brief describes how a Pod failed, with what a user looks for at the beginning: "exit code 3, Error, Pod pi-4xk2b, node worker-1".
func brief(f events.PodFailure) string {
	var parts []string
	if f.ExitCode != 0 {
		parts = append(parts, fmt.Sprint("exit code ", f.ExitCode))
	}
	for _, part := range []struct{ what, text string }{{"", f.Reason}, {"Pod ", f.Pod}, {"node ", f.Node}} {
		if part.text != "" {
			parts = append(parts, part.what+part.text)
		}
	}
	return strings.Join(parts, ", ")
}

// ended reports whether the run has ended.
func (r *Run) ended() bool {
	return r.State == string(events.RunComplete) || r.State == string(events.RunFailed) || r.State == missing
}

// Took returns how long the run took, or has taken up to now; ok is false if that is not known.
func (r *Run) Took(now time.Time) (took time.Duration, ok bool) {
	switch {
	case r.Start.IsZero() || r.State == "":
		return 0, false
	case !r.End.IsZero():
		return max(0, r.End.Sub(r.Start)), true // two clocks may make it negative
	case r.ended():
		return 0, false
	}
	return max(0, now.Sub(r.Start)), true
}

// Bad reports whether the work of the tick was not done: its run failed or was deleted before its end, or there was none although
// there should have been.
func (t Tick) Bad() bool { return looks[t.mark()].bad }

// After reports whether anything of the tick happened after that time, or may still happen.
func (t Tick) After(since time.Time) bool {
	if last(t.TickDecided).After(since) {
		return true
	}
	return t.Run != nil && (t.Run.State != "" && !t.Run.ended() || t.Run.End.After(since))
}

// job returns the name of the tick's Job, "" if there is none.
func (t Tick) job() string {
	if t.Job == nil {
		return ""
	}
	return t.Job.Name
}

// last returns the last nominal time of a verdict.
func last(e events.TickDecided) time.Time {
	if e.Until.After(e.Nominal) {
		return e.Until
	}
	return e.Nominal
}

// decided returns a verdict of the status as it is announced.
func decided(of events.Reference, v v1alpha1.TickVerdict) events.TickDecided {
	e := events.TickDecided{ScheduledJob: of, Verdict: events.Verdict(v.Verdict), Reason: v.Reason, Message: v.Message, Nominal: v.Time.UTC(), Count: v.Count,
		Until: instant(v.Until)}
	if v.JobName != "" {
		e.Job = &events.Reference{Namespace: of.Namespace, Name: v.JobName, UID: v.JobUID}
	}
	return e
}

// instant returns the zero time for nil.
func instant(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
