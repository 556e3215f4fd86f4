package show

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// The sources of moments that are not about one Job.
const (
	subscriber = "subscriber"
	reconciler = "reconciler"
)

// Received records a public event that the subscriber received, and returns what is worth telling about it. A repeated event counts
// once.
func (s *Story) Received(e events.Public, at time.Time) []Moment {
	id := events.PublicType(e) + " " + events.PublicID(e)
	if s.received[id] {
		return nil
	}
	if s.received == nil {
		s.received = map[string]bool{}
	}
	s.received[id] = true
	switch e := e.(type) {
	case events.JobFinished:
		return s.receivedFinish(e, at)
	case events.TickDecided:
		return s.receivedVerdict(e, at)
	}
	return nil
}

func (s *Story) receivedFinish(e events.JobFinished, at time.Time) []Moment {
	k, c := s.job(e.Job.Name), s.Schedule
	switch {
	case k != nil:
		k.Finish = &e
	case c != nil && e.Owner != nil && e.Owner.ScheduledJob.Name == c.Name:
		c.finished[e.Job.UID] = e
	default:
		return nil
	}
	return []Moment{{At: at, Who: subscriber, Text: fmt.Sprintf("JobFinish of %s: %s, %d succeeded, %d failed, %d s", e.Job.Name, e.Result, e.Succeeded, e.Failed, e.DurationSeconds)}}
}

func (s *Story) receivedVerdict(e events.TickDecided, at time.Time) []Moment {
	c := s.Schedule
	if c == nil || e.ScheduledJob.Name != c.Name {
		return nil
	}
	c.verdicts = append(c.verdicts, e)
	text := e.Nominal.UTC().Format(time.TimeOnly)
	if !e.Until.IsZero() {
		text += fmt.Sprintf(" to %s, %d times", e.Until.UTC().Format(time.TimeOnly), e.Count)
	}
	text += ": " + verdict(e)
	if e.Job != nil {
		text += ": Job " + e.Job.Name
	}
	return []Moment{{At: at, Who: c.Name, Text: text}}
}

// agrees reports whether the JobFinish event matches the Job's status.
func (k *Job) agrees() bool {
	if k.Finish == nil {
		return false
	}
	result := events.JobSucceeded
	if k.Result == batchv1.JobFailed {
		result = events.JobFailed
	}
	return k.Finish.Result == result && k.Finish.Reason == k.Reason && k.Finish.Succeeded == k.Succeeded && k.Finish.Failed == k.Failed
}
