package convert

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/jobstream/jobstream/functions/schedule"
)

// daylight describes the first clock change within a year around which a CronJob and a ScheduledJob run at different times; it
// returns "" if there is none. A CronJob skips a time that does not exist, and runs twice at a time that occurs twice.
// docs/schedules.md explains what a ScheduledJob does.
func daylight(spec string, s schedule.Schedule, in *time.Location, now time.Time) string {
	theirs, err := cron.ParseStandard("CRON_TZ=" + in.String() + " " + spec)
	if err != nil {
		return "" // the API server rejects such a CronJob
	}
	for at := range transitions(in, now, now.AddDate(1, 0, 0)) {
		from, to := at.Add(-3*time.Hour), at.Add(3*time.Hour)
		var a, b []string
		for t := theirs.Next(from); !t.IsZero() && !t.After(to); t = theirs.Next(t) {
			a = append(a, t.In(in).Format("15:04 MST"))
		}
		for t := range s.All(from, to) {
			b = append(b, t.In(in).Format("15:04 MST"))
		}
		if a, b := few(a), few(b); a != b {
			return fmt.Sprintf("around the change of the clock on %s a CronJob runs at %s, a ScheduledJob at %s", at.In(in).Format(time.DateOnly), a, b)
		}
	}
	return ""
}

// few formats a short list of times for the user.
func few(times []string) string {
	switch n := len(times); {
	case n == 0:
		return "no time"
	case n > 4:
		return fmt.Sprintf("%s, %s, … %s (%d times)", times[0], times[1], times[n-1], n)
	}
	text := times[0]
	for _, t := range times[1:] {
		text += ", " + t
	}
	return text
}

// transitions yields the instants at which the zone's offset changes, to the second.
func transitions(in *time.Location, from, to time.Time) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		for at := from.In(in); at.Before(to); {
			_, end := at.ZoneBounds()
			if end.IsZero() || !end.Before(to) {
				return
			}
			_, before := end.Add(-time.Second).Zone()
			if _, after := end.Zone(); before != after && !yield(end) {
				return
			}
			at = end
		}
	}
}
