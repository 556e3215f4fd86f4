package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
)

// TestDaylightSaving: what each schedule does in the zone between two points in time. The wanted times show the wall clock and
// its offset.
func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct{ name, zone, spec, from, to, want string }{
		// Berlin skips 02:00-03:00 on 29 March 2026 and has 02:00-03:00 twice on 25 October.
		{"02:30 in Berlin on the night it does not exist", "Europe/Berlin", "30 2 * * *", "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z",
			"28 02:30 +0100, 29 03:00 +0200, 30 02:30 +0200"},
		{"02:30 in Berlin on the night it comes twice", "Europe/Berlin", "30 2 * * *", "2026-10-24T00:00:00Z", "2026-10-27T00:00:00Z",
			"24 02:30 +0200, 25 02:30 +0200, 26 02:30 +0100"},
		{"every half hour in the night without 02:30", "Europe/Berlin", "*/30 * * * *", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z",
			"29 01:30 +0100, 29 03:00 +0200, 29 03:30 +0200, 29 04:00 +0200"},
		{"every half hour in the night with two of 02:30", "Europe/Berlin", "*/30 * * * *", "2026-10-24T23:30:00Z", "2026-10-25T02:00:00Z",
			"25 02:00 +0200, 25 02:30 +0200, 25 02:00 +0100, 25 02:30 +0100, 25 03:00 +0100"},
		{"a question mark is a star", "Europe/Berlin", "*/30 ? * * *", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "25 02:30 +0200, 25 02:00 +0100"},
		{"02:00 is the first time that is missing", "Europe/Berlin", "0 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", "29 03:00 +0200, 30 02:00 +0200"},
		{"03:00 is the first time that is not", "Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z", "29 03:00 +0200, 30 03:00 +0200"},
		{"half past every second hour follows the wall clock: it starts with a star", "Europe/Berlin", "30 */2 * * *", "2026-03-28T23:00:00Z", "2026-03-29T03:00:00Z",
			"29 00:30 +0100, 29 04:30 +0200"},
		{"half past every second hour, twice in the fold", "Europe/Berlin", "30 */2 * * *", "2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z",
			"25 02:30 +0200, 25 02:30 +0100"},
		{"three times of one gap are one", "Europe/Berlin", "0,20,40 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z",
			"29 03:00 +0200, 30 02:00 +0200, 30 02:20 +0200"},
		{"a range of hours over the gap: 02:30 comes at 03:00", "Europe/Berlin", "30 1-4 * * *", "2026-03-29T00:00:00Z", "2026-03-29T03:00:00Z",
			"29 01:30 +0100, 29 03:00 +0200, 29 03:30 +0200, 29 04:30 +0200"},
		{"a list of hours over the gap: 02:00 and 03:00 are one", "Europe/Berlin", "0 1,2,3 * * *", "2026-03-28T23:00:00Z", "2026-03-29T03:00:00Z",
			"29 01:00 +0100, 29 03:00 +0200"},
		{"a range of hours over the fold: no hour twice", "Europe/Berlin", "0 1-4 * * *", "2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z",
			"25 01:00 +0200, 25 02:00 +0200, 25 03:00 +0100, 25 04:00 +0100"},
		{"every second of a fixed hour that does not exist", "Europe/Berlin", "* * 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z",
			"29 03:00 +0200"},
		{"daily, as always", "Europe/Berlin", "@daily", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z",
			"29 00:00 +0100, 30 00:00 +0200"},
		{"hourly is every hour of real time", "Europe/Berlin", "@hourly", "2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z",
			"25 02:00 +0200, 25 02:00 +0100, 25 03:00 +0100"},
		{"every 45 minutes knows no wall clock", "Europe/Berlin", "@every 45m", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z",
			"29 01:45 +0100, 29 03:30 +0200"},

		{"midnight in Havana on the day without one", "America/Havana", "0 0 * * *", "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z",
			"08 01:00 -0400, 09 00:00 -0400"},
		{"half past midnight in Havana, twice", "America/Havana", "30 0 * * *", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z",
			"01 00:30 -0400, 02 00:30 -0500"},
		{"the day before starts again in São Paulo: 23:30 comes once", "America/Sao_Paulo", "30 23 * * *", "2018-02-16T12:00:00Z", "2018-02-19T12:00:00Z",
			"16 23:30 -0200, 17 23:30 -0200, 18 23:30 -0300"},

		// Lord Howe moves its clock by half an hour: 02:00 to 02:30 in October, 02:00 to 01:30 in April.
		{"02:15 on Lord Howe when half an hour is missing", "Australia/Lord_Howe", "15 2 * * *", "2026-10-02T18:00:00Z", "2026-10-04T18:00:00Z",
			"04 02:30 +1100, 05 02:15 +1100"},
		{"02:30 on Lord Howe is there", "Australia/Lord_Howe", "30 2 * * *", "2026-10-03T00:00:00Z", "2026-10-04T00:00:00Z", "04 02:30 +1100"},
		{"01:45 on Lord Howe when it comes twice", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", "2026-04-05T00:00:00Z", "05 01:45 +1100"},
		{"quarter to every hour on Lord Howe", "Australia/Lord_Howe", "45 * * * *", "2026-04-04T14:00:00Z", "2026-04-04T16:30:00Z",
			"05 01:45 +1100, 05 01:45 +1030, 05 02:45 +1030"},

		{"Samoa had no 30 December 2011: its 09:00 comes when the 31st begins", "Pacific/Apia", "0 9 * * *", "2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z",
			"29 09:00 -1000, 31 00:00 +1400, 31 09:00 +1400, 01 09:00 +1400"},
		{"Friday in Samoa, in the week without one", "Pacific/Apia", "0 9 * * FRI", "2011-12-24T00:00:00Z", "2012-01-08T00:00:00Z",
			"31 00:00 +1400, 06 09:00 +1400"},
		{"every six hours in Samoa follows the wall clock over the date line", "Pacific/Apia", "0 */6 * * *", "2011-12-30T03:00:00Z", "2011-12-30T23:00:00Z",
			"29 18:00 -1000, 31 00:00 +1400, 31 06:00 +1400, 31 12:00 +1400"},
		{"Kwajalein had no 21 August 1993", "Pacific/Kwajalein", "0 9 21 8 *", "1993-01-01T00:00:00Z", "1994-12-31T00:00:00Z",
			"22 00:00 +1200, 21 09:00 +1200"},
		{"Alaska had a day twice in 1867, from 15:33 on: no 09:00 of it comes again", "America/Juneau", "0 9 * * *", "1867-10-17T12:00:00Z", "1867-10-21T00:00:00Z",
			"18 09:00 +1502, 19 09:00 +1502, 20 09:00 -0857"},

		{"midnight in Brussels in local mean time, 17 minutes and 30 seconds", "Europe/Brussels", "0 0 * * *", "1879-12-31T00:00:00Z", "1880-01-02T00:00:00Z",
			"01 00:00 +0017, 02 00:00 +0017"},
		{"the day on which Berlin left local mean time: six and a half minutes are missing", "Europe/Berlin", "3 0 * * *", "1893-03-31T12:00:00Z", "1893-04-02T12:00:00Z",
			"01 00:06 +0100, 02 00:03 +0100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := instant(t, c.from), instant(t, c.to)
			s := parse(t, c.spec, schedule.Options{Location: zone(t, c.zone), Anchor: from})
			var got []string
			for due := range s.All(from, to) {
				got = append(got, due.Format("02 15:04 -0700"))
				if prev, ok := s.Prev(due); !ok || !prev.Equal(due) {
					t.Errorf("%v is due, and the last up to it is %v", due, prev)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%s in %s:\n got %s\nwant %s", c.spec, c.zone, strings.Join(got, ", "), c.want)
			}
			if n := s.Count(from, to); n != int64(len(got)) {
				t.Errorf("%d counted, %d listed", n, len(got))
			}
		})
	}
}

// TestDates: which days a calendar has, in UTC.
func TestDates(t *testing.T) {
	for _, c := range []struct{ name, spec, from, want string }{
		{"29 February comes every four years", "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29 2032-02-29 2036-02-29"},
		{"but not in 2100", "0 0 29 2 *", "2093-01-01T00:00:00Z", "2096-02-29 2104-02-29 2108-02-29"},
		{"the 31st comes seven times a year", "0 0 31 * *", "2026-01-01T00:00:00Z", "2026-01-31 2026-03-31 2026-05-31"},
		{"Friday or the 13th", "0 0 13 * FRI", "2026-11-01T00:00:00Z", "2026-11-06 2026-11-13 2026-11-20"},
		{"every second day starts anew each month", "0 0 */2 * *", "2026-01-28T12:00:00Z", "2026-01-29 2026-01-31 2026-02-01"},
		{"a weekday with a step is no star to robfig/cron, and so restricts", "0 0 1 * */3", "2026-11-01T12:00:00Z", "2026-11-04 2026-11-07 2026-11-08"},
		{"the end of the year 9999 is the end", "0 0 31 12 *", "9998-01-01T00:00:00Z", "9998-12-31 9999-12-31 none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.spec, schedule.Options{})
			after := instant(t, c.from)
			var got []string
			for range 3 {
				next, ok := s.Next(after)
				if !ok {
					got = append(got, "none")
					break
				}
				got = append(got, next.Format(time.DateOnly))
				after = next
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.spec, strings.Join(got, " "), c.want)
			}
		})
	}
}

// TestIntervals: @every counts from the creation of its object, not from a restart of jobstream.
func TestIntervals(t *testing.T) {
	created := time.Date(2026, 11, 21, 12, 0, 0, 700e6, time.UTC)
	s := parse(t, "@every 90s", schedule.Options{Anchor: created})
	if _, ok := s.Prev(created.Add(89 * time.Second)); ok {
		t.Error("something was due before the first interval had passed")
	}
	var got []string
	for due := range s.All(created.Add(-time.Hour), created.Add(5*time.Minute)) {
		got = append(got, due.Format(time.TimeOnly))
	}
	if want := []string{"12:01:30", "12:03:00", "12:04:30"}; !slices.Equal(got, want) {
		t.Errorf("due at %v, not at %v", got, want)
	}
	if n := s.Count(time.Time{}, created.Add(24*time.Hour)); n != 960 {
		t.Errorf("%d in a day", n)
	}
}

// TestEdges: the zero Schedule, and times beyond the years.
func TestEdges(t *testing.T) {
	var none schedule.Schedule
	s := parse(t, "* * * * * *", schedule.Options{})
	now := time.Date(2026, 11, 21, 12, 0, 0, 500e6, time.UTC)
	far, long := time.Unix(1<<62, 0), time.Unix(-1<<62, 0)
	if _, ok := none.Next(now); ok || none.Count(long, far) != 0 || none.String() != "" {
		t.Error("a zero Schedule is due")
	}
	if next, ok := s.Next(now); !ok || !next.Equal(now.Add(500*time.Millisecond)) {
		t.Errorf("half a second after 12:00:00 comes %v", next)
	}
	if prev, ok := s.Prev(now); !ok || !prev.Equal(now.Truncate(time.Second)) {
		t.Errorf("half a second after 12:00:00 was %v", prev)
	}
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	if next, ok := s.Next(long); !ok || !next.Equal(first) {
		t.Errorf("the first of all is %v", next)
	}
	if prev, ok := s.Prev(far); !ok || !prev.Equal(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)) {
		t.Errorf("the last of all is %v", prev)
	}
	if prev, ok := s.Prev(first); !ok || !prev.Equal(first) {
		t.Errorf("the first of all is not its own: %v", prev)
	}
	if _, ok := s.Next(far); ok {
		t.Error("something comes after the last")
	}
	if _, ok := s.Prev(long); ok {
		t.Error("something was before the first")
	}
	if n := s.Count(long, far); n != 3652059*86400 {
		t.Errorf("%d seconds from the year 1 to the year 9999", n)
	}
	if s.Count(now, now) != 0 || s.Count(now, long) != 0 {
		t.Error("something lies in an empty range")
	}
}

func ExampleSchedule_All() {
	berlin := time.FixedZone("CET", 3600)
	s, _ := schedule.Parse("30 9,17 * * MON", schedule.Options{Location: berlin})
	down, up := time.Date(2026, 11, 16, 12, 0, 0, 0, berlin), time.Date(2026, 11, 23, 12, 0, 0, 0, berlin)
	fmt.Println(s.Count(down, up), "missed:")
	for due := range s.All(down, up) {
		fmt.Println(due.Format(time.RFC3339))
	}
	// Output:
	// 2 missed:
	// 2026-11-16T17:30:00+01:00
	// 2026-11-23T09:30:00+01:00
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
