// Package next computes when a ScheduledJob is due next, and describes the effect of clock changes. It has no I/O and no clock:
// the same object and time give the same result.
package next

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/schedule"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

// Time is one nominal time.
type Time struct {
	// At is in the schedule's own zone.
	At time.Time
	// Note describes the effect of a clock change on this time; "" if there is none.
	Note string
}

// Times returns the first n nominal times of the ScheduledJob after now, or fewer if the schedule ends. Times before its creation
// or startAfter do not count; spec.suspend makes no difference. The error is a *scheduledjob.Problem.
func Times(j events.ScheduledJob, zones scheduledjob.Zones, now time.Time, n int) ([]Time, error) {
	t, problem := scheduledjob.Timetable(j, zones)
	if problem != nil {
		return nil, problem
	}
	after := now
	if begin := scheduledjob.Beginning(j); begin.After(after) {
		after = begin
	}
	wall := onTheWall(j, zones)
	var times []Time
	for at, ok := t.Next(after); ok && len(times) < n; at, ok = t.Next(at) {
		times = append(times, Time{at, note(wall, at)})
	}
	return times, nil
}

// onTheWall returns the same schedule in UTC, which has no clock changes: it tells which wall-clock readings match. It is nil for
// a schedule that does not depend on the wall clock.
func onTheWall(j events.ScheduledJob, zones scheduledjob.Zones) *schedule.Schedule {
	if !j.RunAt.IsZero() || strings.HasPrefix(strings.TrimSpace(j.Schedule), "@every") {
		return nil
	}
	j.TimeZone = ""
	t, problem := scheduledjob.Timetable(j, zones)
	if s, is := t.(schedule.Schedule); is && problem == nil {
		return &s
	}
	return nil
}

// note describes the effect of a clock change on a nominal time.
func note(wall *schedule.Schedule, at time.Time) string {
	if wall == nil {
		return ""
	}
	reading := read(at)
	if _, matches := first(wall, reading.Add(-time.Second), reading); !matches {
		missing, ok := first(wall, reading.Add(-gap(at)-time.Second), reading)
		if !ok {
			return ""
		}
		return fmt.Sprintf("moved: the clock jumps over %s", clock(missing))
	}
	switch twin := twin(at); {
	case twin.IsZero():
		return ""
	case twin.After(at):
		return fmt.Sprintf("%s comes twice: the first", clock(reading))
	}
	return fmt.Sprintf("%s comes twice: the second", clock(reading))
}

// read returns the wall-clock reading, as a time in UTC.
func read(at time.Time) time.Time {
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// first returns the schedule's first time in (from, to].
func first(s *schedule.Schedule, from, to time.Time) (time.Time, bool) {
	t, ok := s.Next(from)
	return t, ok && !t.After(to)
}

// gap returns how far the clock jumps forward at the time.
func gap(at time.Time) time.Duration {
	return read(at).Sub(read(at.Add(-time.Second))) - time.Second
}

// twin returns the other time within a day at which the clock shows the same; zero if there is none.
func twin(at time.Time) time.Time {
	_, offset := at.Zone()
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, other := at.Add(near).Zone()
		if t := at.Add(time.Duration(offset-other) * time.Second); !t.Equal(at) && read(t).Equal(read(at)) {
			return t
		}
	}
	return time.Time{}
}

// clock formats a reading, with seconds unless they are zero.
func clock(reading time.Time) string {
	if reading.Second() != 0 {
		return reading.Format(time.TimeOnly)
	}
	return reading.Format("15:04")
}
