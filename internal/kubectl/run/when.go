package run

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
	"github.com/jobstream/jobstream/internal/zone"
)

// moment is when a ScheduledJob creates Jobs: once, or by a schedule. For a plain Job both are empty.
type moment struct {
	once     *time.Time
	schedule string
	zone     string
}

// looksLikeDate distinguishes a time from a schedule, which has no year.
var looksLikeDate = regexp.MustCompile(`^\d{4}-`)

// timeExample shows the form of RFC 3339.
const timeExample = "2026-12-24T18:00:00Z or 2026-12-24T18:00:00+01:00"

// when parses --run-at and --time-zone by the rules that the API server applies to ScheduledJobs.
func (o *Options) when() (moment, error) {
	switch {
	case o.RunAt == "" && o.TimeZone != "":
		return moment{}, fmt.Errorf(`--time-zone=%s belongs to a schedule: add --run-at="30 2 * * *", or leave it out`, o.TimeZone)
	case o.RunAt == "":
		return moment{}, nil
	case looksLikeDate.MatchString(o.RunAt):
		return o.once()
	}
	loc, err := zone.Load(o.TimeZone)
	if err != nil {
		return moment{}, fmt.Errorf("--time-zone: %w", err)
	}
	if _, err := schedule.Parse(o.RunAt, schedule.Options{Location: loc, Seed: o.Name}); err != nil {
		message := err.Error()
		if problem := (*schedule.Error)(nil); errors.As(err, &problem) {
			message = problem.Message
		}
		return moment{}, fmt.Errorf(`--run-at=%q is neither a time, such as 2026-12-24T18:00:00Z, nor a schedule: %s`, o.RunAt, message)
	}
	return moment{schedule: o.RunAt, zone: o.TimeZone}, nil
}

func (o *Options) once() (moment, error) {
	at, err := time.Parse(time.RFC3339, o.RunAt)
	switch {
	case err != nil || at.Nanosecond() != 0 || at.Year() < 1970:
		return moment{}, fmt.Errorf("--run-at=%q is no time of whole seconds with an offset: write it as in %s", o.RunAt, timeExample)
	case o.TimeZone != "":
		return moment{}, fmt.Errorf("--time-zone belongs to a schedule, and a time has an offset of its own: leave out --time-zone, and write --run-at as in %s", timeExample)
	}
	return moment{once: &at}, nil
}
