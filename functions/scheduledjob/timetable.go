package scheduledjob

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/schedule"
)

// Times are the nominal times of a ScheduledJob: those of its schedules, or the one of runAt.
type Times interface {
	// Next returns the first time after the given one.
	Next(after time.Time) (time.Time, bool)
	// Prev returns the last time at or before the given one.
	Prev(upTo time.Time) (time.Time, bool)
	// Count returns how many times there are in (from, to].
	Count(from, to time.Time) int64
}

// once is the one time of runAt.
type once time.Time

func (o once) Next(after time.Time) (time.Time, bool) { return time.Time(o), time.Time(o).After(after) }
func (o once) Prev(upTo time.Time) (time.Time, bool)  { return time.Time(o), !time.Time(o).After(upTo) }

func (o once) Count(from, to time.Time) int64 {
	if t := time.Time(o); t.After(from) && !t.After(to) {
		return 1
	}
	return 0
}

// window is the part of other Times from notBefore to notAfter, both included; a zero time is no limit.
type window struct {
	Times
	notBefore, notAfter time.Time
}

func (w window) Next(after time.Time) (time.Time, bool) {
	t, ok := w.Times.Next(w.first(after))
	return t, ok && (w.notAfter.IsZero() || !t.After(w.notAfter))
}

func (w window) Prev(upTo time.Time) (time.Time, bool) {
	t, ok := w.Times.Prev(w.last(upTo))
	return t, ok && !t.Before(w.notBefore)
}

func (w window) Count(from, to time.Time) int64 { return w.Times.Count(w.first(from), w.last(to)) }

func (w window) first(after time.Time) time.Time {
	if w.notBefore.IsZero() {
		return after
	}
	return later(after, w.notBefore.Add(-time.Nanosecond))
}

func (w window) last(upTo time.Time) time.Time {
	if w.notAfter.IsZero() || upTo.Before(w.notAfter) {
		return upTo
	}
	return w.notAfter
}

// within returns the part of the times in the window of the ScheduledJob.
func within(j events.ScheduledJob, t Times) Times {
	if j.NotBefore.IsZero() && j.NotAfter.IsZero() {
		return t
	}
	return window{t, j.NotBefore, j.NotAfter}
}

// timetable are the Times of schedules, and those that exclude leaves out.
type timetable struct {
	Times
	excluded Times // nil for none
}

// excluded returns the times that exclude leaves out; nil for none.
func excluded(t Times) Times {
	if t, ok := t.(timetable); ok {
		return t.excluded
	}
	return nil
}

// Problem describes why a ScheduledJob has no nominal times.
type Problem struct {
	// Reason is the reason of the condition Stalled.
	Reason string
	// Message is a complete sentence that names the wrong field and what to write instead.
	Message string
}

func (p *Problem) Error() string { return p.Message }

// Timetable parses when Jobs are due. An error in it is a fact about the user's object, and becomes a condition.
func Timetable(j events.ScheduledJob, zones Zones) (Times, *Problem) {
	if j.Invalid != "" {
		return nil, &Problem{v1alpha1.ReasonInvalidTemplate, j.Invalid}
	}
	several := len(j.Schedules) > 0
	if !j.RunAt.IsZero() {
		if j.Schedule != "" || several {
			return nil, &Problem{v1alpha1.ReasonInvalidSchedule, "spec.schedule and spec.runAt exclude each other: remove one"}
		}
		return once(j.RunAt.UTC().Truncate(time.Second)), nil
	}
	zone, err := zones(j.TimeZone)
	if err != nil {
		return nil, &Problem{v1alpha1.ReasonUnknownTimeZone, fmt.Sprintf("spec.timeZone: %v", err)}
	}
	list := schedule.List{Schedules: j.Schedules, Exclude: j.Exclude}
	if !several {
		list.Schedules = []string{j.Schedule}
	}
	t, err := schedule.ParseList(list, schedule.Options{Location: zone, Seed: string(j.UID), Anchor: j.Created})
	var wrong *schedule.Error
	switch {
	case errors.As(err, &wrong) && !several && wrong.Field == "schedules[0]":
		return nil, &Problem{v1alpha1.ReasonInvalidSchedule, "spec.schedule: " + wrong.Message}
	case err != nil:
		return nil, &Problem{v1alpha1.ReasonInvalidSchedule, fmt.Sprintf("spec.%v", err)}
	case len(j.Exclude) == 0:
		return within(j, t), nil
	}
	return timetable{within(j, t), within(j, t.Excluded())}, nil
}

// longestText is the length of the longest Text in bytes that is not shortened.
const longestText = 512

// Text returns the timetable in one line, to detect changes. One that is very long ends in a hash of it.
func Text(j events.ScheduledJob) string {
	if !j.RunAt.IsZero() {
		return strings.TrimSpace("at " + j.RunAt.UTC().Format(time.RFC3339) + " " + j.Schedule)
	}
	var b strings.Builder
	b.WriteString(j.Schedule)
	b.WriteString(strings.Join(j.Schedules, "; "))
	add := func(word, value string) {
		if value != "" {
			b.WriteString(word + value)
		}
	}
	add(" ", j.TimeZone)
	add(" except ", strings.Join(j.Exclude, "; "))
	if !j.NotBefore.IsZero() {
		add(" from ", j.NotBefore.UTC().Format(time.RFC3339))
	}
	if !j.NotAfter.IsZero() {
		add(" to ", j.NotAfter.UTC().Format(time.RFC3339))
	}
	if text := b.String(); len(text) <= longestText {
		return text
	}
	sum := sha256.Sum256([]byte(b.String()))
	return fmt.Sprintf("%s… %x", strings.ToValidUTF8(b.String()[:longestText-40], ""), sum[:8])
}

// Beginning returns the time up to which a new ScheduledJob ignores its nominal times: its creation, or startAfter. Only runAt
// may be earlier, since the user wants it to run.
func Beginning(j events.ScheduledJob) time.Time {
	begin := j.Created.UTC().Truncate(time.Second)
	if after := j.StartAfter.UTC().Truncate(time.Second); !j.StartAfter.IsZero() && j.RunAt.IsZero() {
		return after
	}
	if at := j.RunAt.UTC().Truncate(time.Second); !j.RunAt.IsZero() && !at.After(begin) {
		return at.Add(-time.Second)
	}
	return begin
}
