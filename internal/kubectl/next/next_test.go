package next_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/next"
	"github.com/jobstream/jobstream/internal/zone"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// In Berlin the clock jumps from 2:00 to 3:00 on 2027-03-28, and back from 3:00 to 2:00 on 2026-10-25. On Lord Howe Island it
// moves by half an hour, and Samoa skipped 30 December 2011.
func TestTimes(t *testing.T) {
	for _, tt := range []struct {
		name, now  string
		schedule   string
		zone       string
		runAt      string
		startAfter string
		n          int
		want       []string
	}{
		{name: "no zone", now: "2026-11-22T18:00:00Z", schedule: "30 2 * * *", n: 2, want: []string{"2026-11-23T02:30:00Z", "2026-11-24T02:30:00Z"}},
		{name: "the very second has come", now: "2026-11-23T02:30:00Z", schedule: "30 2 * * *", n: 1, want: []string{"2026-11-24T02:30:00Z"}},
		{name: "a gap moves a time of day", now: "2027-03-27T00:00:00Z", schedule: "30 2 * * *", zone: "Europe/Berlin", n: 3, want: []string{
			"2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00 moved: the clock jumps over 02:30", "2027-03-29T02:30:00+02:00"}},
		{name: "a gap moves seconds", now: "2027-03-28T00:00:00Z", schedule: "15 30 2 * * *", zone: "Europe/Berlin", n: 1, want: []string{
			"2027-03-28T03:00:00+02:00 moved: the clock jumps over 02:30:15"}},
		{name: "two times in a gap are moved to one", now: "2027-03-28T00:00:00Z", schedule: "10,30 2 * * *", zone: "Europe/Berlin", n: 2, want: []string{
			"2027-03-28T03:00:00+02:00 moved: the clock jumps over 02:10", "2027-03-29T02:10:00+02:00"}},
		{name: "a time that is due itself after a gap", now: "2027-03-28T00:00:00Z", schedule: "0 3 * * *", zone: "Europe/Berlin", n: 1, want: []string{"2027-03-28T03:00:00+02:00"}},
		{name: "a star has no gap", now: "2027-03-28T00:20:00Z", schedule: "30 * * * *", zone: "Europe/Berlin", n: 2, want: []string{"2027-03-28T01:30:00+01:00", "2027-03-28T03:30:00+02:00"}},
		{name: "of a fold a time of day takes the first", now: "2026-10-24T12:00:00Z", schedule: "30 2 * * *", zone: "Europe/Berlin", n: 2, want: []string{
			"2026-10-25T02:30:00+02:00 02:30 comes twice: the first", "2026-10-26T02:30:00+01:00"}},
		{name: "of a fold a star takes both", now: "2026-10-24T23:00:00Z", schedule: "30 * * * *", zone: "Europe/Berlin", n: 4, want: []string{
			"2026-10-25T01:30:00+02:00", "2026-10-25T02:30:00+02:00 02:30 comes twice: the first", "2026-10-25T02:30:00+01:00 02:30 comes twice: the second", "2026-10-25T03:30:00+01:00"}},
		{name: "half an hour's gap", now: "2026-10-03T00:00:00Z", schedule: "15 2 * * *", zone: "Australia/Lord_Howe", n: 1, want: []string{"2026-10-04T02:30:00+11:00 moved: the clock jumps over 02:15"}},
		{name: "half an hour's fold", now: "2027-04-03T00:00:00Z", schedule: "45 * 4 4 *", zone: "Australia/Lord_Howe", n: 4, want: []string{
			"2027-04-04T00:45:00+11:00", "2027-04-04T01:45:00+11:00 01:45 comes twice: the first", "2027-04-04T01:45:00+10:30 01:45 comes twice: the second", "2027-04-04T02:45:00+10:30"}},
		{name: "a day's gap", now: "2011-12-30T00:00:00Z", schedule: "0 12 30 12 *", zone: "Pacific/Apia", n: 1, want: []string{"2011-12-31T00:00:00+14:00 moved: the clock jumps over 12:00"}},
		{name: "@every reads no clock", now: "2026-10-24T23:50:00Z", schedule: "@every 30m", zone: "Europe/Berlin", n: 2, want: []string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00"}},
		{name: "a name", now: "2026-11-22T18:00:00Z", schedule: "@weekly", zone: "Asia/Kolkata", n: 1, want: []string{"2026-11-29T00:00:00+05:30"}},
		{name: "H is the object's", now: "2026-11-22T18:00:00Z", schedule: "H H(2-4) * * *", n: 1, want: []string{"2026-11-23T04:58:00Z"}},
		{name: "one time", now: "2026-11-22T18:00:00Z", runAt: "2026-12-24T18:00:00+01:00", n: 10, want: []string{"2026-12-24T17:00:00Z"}},
		{name: "one time that has passed", now: "2026-12-25T00:00:00Z", runAt: "2026-12-24T18:00:00Z", n: 10},
		{name: "it begins later", now: "2026-11-22T18:00:00Z", schedule: "@daily", startAfter: "2026-12-24T00:00:00Z", n: 1, want: []string{"2026-12-25T00:00:00Z"}},
		{name: "it has begun", now: "2026-11-22T18:00:00Z", schedule: "@daily", startAfter: "2026-01-01T00:00:00Z", n: 1, want: []string{"2026-11-23T00:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := events.ScheduledJob{UID: "7d9e9b6c", Created: at(t, "2000-01-01T00:00:00Z"), Schedule: tt.schedule, TimeZone: tt.zone, RunAt: at(t, tt.runAt), StartAfter: at(t, tt.startAfter)}
			times, err := next.Times(j, zone.Load, at(t, tt.now), tt.n)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range times {
				got = append(got, strings.TrimSpace(one.At.Format(time.RFC3339)+" "+one.Note))
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
	for _, j := range []events.ScheduledJob{{Schedule: "0 25 * * *"}, {Schedule: "@daily", TimeZone: "Mars"}, {Schedule: "0 0 30 2 *"}} {
		if _, err := next.Times(j, zone.Load, time.Unix(0, 0), 1); err == nil {
			t.Errorf("%+v has times", j)
		}
	}
}
