package schedule_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/jobstream/jobstream/functions/schedule"
)

func ExampleParse() {
	created := time.Date(2026, 11, 21, 12, 0, 0, 300e6, time.UTC)
	s, err := schedule.Parse("H H(0-5) * * MON-FRI", schedule.Options{Seed: "0a53fc1a-6f4c-4a7e-9d3b-5c2e8f1d7b90", Anchor: created})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(s)
	for range 3 {
		created, _ = s.Next(created)
		fmt.Println(created.Format("Mon 2 Jan 15:04:05"))
	}
	// Output:
	// 31 1 * * MON-FRI
	// Mon 23 Nov 01:31:00
	// Tue 24 Nov 01:31:00
	// Wed 25 Nov 01:31:00
}

func ExampleParse_errors() {
	for _, spec := range []string{"", "30 2 * *", "30 24 * * *", "0 3 * * 7", "0 0 30 FEB *", "TZ=Asia/Tokyo 0 3 * * *", "@every 90ms", "@reboot", "H/1 * * * *", "H(50-70) * * * *"} {
		_, err := schedule.Parse(spec, schedule.Options{})
		fmt.Println(err)
	}
	_, err := schedule.Parse("@daily", schedule.Options{Location: time.Local})
	fmt.Println(err)
	// Output:
	// schedule: nothing is written; write five fields, such as "30 2 * * *", or a name, such as @daily
	// schedule: 4 fields; write five, for minute, hour, day of month, month and day of week, or six, with seconds before them
	// schedule: hour "24": end of range (24) above maximum (23); hour takes 0-23, *, a-b, lists a,b, steps /n, and H
	// schedule: day of week "7": end of range (7) above maximum (6); day of week takes 0-6 or SUN-SAT (0 is Sunday), *, a-b, lists a,b, steps /n, and H
	// schedule: it is never due, as month FEB has no day 30; write a day that it has
	// schedule: "TZ=Asia/Tokyo" does not belong here; write the zone into the field timeZone
	// schedule: @every needs a duration of whole seconds, at least one, not "90ms"; write, for example, @every 90s or @every 1h30m
	// schedule: "@reboot" is not known; write @yearly, @monthly, @weekly, @daily, @hourly, @every with a duration, or five fields
	// schedule: minute "H/1": the step of this H has to be from 2 to 60; minute takes 0-59, *, a-b, lists a,b, steps /n, and H
	// schedule: minute "H(50-70)": a range for H is H(a-b) with 0 <= a <= b <= 59; minute takes 0-59, *, a-b, lists a,b, steps /n, and H
	// timeZone: "Local" is another zone on every machine; write an IANA name such as Europe/Berlin, or nothing for UTC
}

// TestWhatIsRead: two ways to write the same thing.
func TestWhatIsRead(t *testing.T) {
	for _, c := range []struct{ name, spec, same string }{
		{"seconds may be left out", "30 2 * * *", "0 30 2 * * *"},
		{"names are numbers", "0 0 1 JAN,dec Mon-FRI", "0 0 1 1,12 1-5"},
		{"a question mark is a star", "0 0 ? * 1", "0 0 * * 1"},
		{"a step from a number runs to the end", "5/20 * * * *", "5,25,45 * * * *"},
		{"leading zeros", "05 04 * * *", "5 4 * * *"},
		{"space is space", "  5\t4   * * *\n", "5 4 * * *"},
		{"yearly", "@yearly", "0 0 1 1 *"},
		{"annually", "@annually", "@yearly"},
		{"monthly", "@monthly", "0 0 1 * *"},
		{"weekly", "@weekly", "0 0 * * SUN"},
		{"daily", "@daily", "0 0 * * *"},
		{"midnight", "@midnight", "@daily"},
		{"hourly", "@hourly", "0 * * * *"},
		{"every, in other words", "@every 1h30m", "@every 90m"},
		{"either day suffices, if both are restricted", "0 0 13 * FRI", "0 0 13 * 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			a, b := parse(t, c.spec, schedule.Options{Anchor: from}), parse(t, c.same, schedule.Options{Anchor: from})
			if x, y := slices.Collect(a.All(from, from.AddDate(2, 0, 0))), slices.Collect(b.All(from, from.AddDate(2, 0, 0))); !slices.Equal(x, y) || len(x) == 0 {
				t.Errorf("%q has %d times and %q has %d in two years", c.spec, len(x), c.same, len(y))
			}
		})
	}
}

// TestWhatIsRefused: every error is about the field schedule, and ends with what to write instead.
func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct{ name, spec, says string }{
		{"nothing", "", "write five fields"},
		{"blanks", " \t ", "write five fields"},
		{"four fields", "* * * *", "4 fields; write five"},
		{"seven fields", "* * * * * * 2026", "7 fields; write five"},
		{"minute 60", "60 * * * *", `minute "60"`},
		{"second 60", "60 0 * * * *", `second "60"`},
		{"hour 24", "0 24 * * *", `hour "24"`},
		{"day 0", "0 0 0 * *", `day of month "0"`},
		{"day 32", "0 0 32 * *", `day of month "32"`},
		{"month 13", "0 0 1 13 *", "1-12 or JAN-DEC"},
		{"weekday 7", "0 0 * * 7", "0 is Sunday"},
		{"a weekday for a month", "0 0 * MON *", `month "MON"`},
		{"a range backwards", "0 22-6 * * *", `hour "22-6"`},
		{"a step of nothing", "*/0 * * * *", "step"},
		{"a minus", "-5 * * * *", `minute "-5"`},
		{"a plus", "+5 * * * *", `minute "+5"`},
		{"a plus that hides", "1-+5 * * * *", "character"},
		{"a star with an end", "*-5 * * * *", "nothing but a step can follow *"},
		{"a lone comma, which robfig/cron reads as never", ", * * * *", "comma"},
		{"a comma too many", "1,,2 * * * *", "comma"},
		{"a number too great for a computer", "99999999999999999999 * * * *", "minute"},
		{"other scripts", "٣ * * * *", "character"},
		{"30 February", "0 0 30 2 *", "has no day 30"},
		{"31 of the short months", "0 0 31 FEB,APR,JUN,SEP,NOV *", "has no day 31"},
		{"a zone in the schedule", "TZ=Europe/Berlin 0 0 * * *", "write the zone into the field timeZone"},
		{"a zone in the schedule, as cron has it", "CRON_TZ=Europe/Berlin 0 0 * * *", "write the zone into the field timeZone"},
		{"a zone and nothing else, which robfig/cron does not survive", "TZ=0", "write the zone into the field timeZone"},
		{"a reboot", "@reboot", "@daily"},
		{"capitals in a name", "@Daily", "@daily"},
		{"a name and more", "@daily 5", "@daily"},
		{"every nothing", "@every", "write, for example"},
		{"every half second", "@every 500ms", "whole seconds"},
		{"every second and a half", "@every 1500ms", "whole seconds"},
		{"every minus hour", "@every -1h", "whole seconds"},
		{"every day, which Go does not know", "@every 1d", "whole seconds"},
		{"H/1", "H/1 * * * *", "from 2 to 60"},
		{"H with a step beyond its range", "0 H(0-5)/7 * * *", "from 2 to 6"},
		{"H beyond its field", "0 H(20-24) * * *", "0 <= a <= b <= 23"},
		{"H backwards", "0 H(5-2) * * *", "0 <= a <= b <= 23"},
		{"H unfinished", "0 H(5-7 * * *", "H(a-b)"},
		{"h", "h * * * *", `minute "h"`},
		{"too long", strings.Repeat("0,", 200) + "0 * * * *", "at most 256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := schedule.Parse(c.spec, schedule.Options{})
			var e *schedule.Error
			if !errors.As(err, &e) || e.Reason != schedule.InvalidSchedule || e.Field != "schedule" || !strings.Contains(e.Message, c.says) {
				t.Errorf("%q: %v, which should say %q", c.spec, err, c.says)
			}
		})
	}
}

func TestTheZoneOfTheMachineIsRefused(t *testing.T) {
	var e *schedule.Error
	if _, err := schedule.Parse("@daily", schedule.Options{Location: time.Local}); !errors.As(err, &e) || e.Reason != schedule.UnknownTimeZone || e.Field != "timeZone" {
		t.Error(err)
	}
}

// TestHIsStable: the numbers that H becomes must never change, or schedules move when jobstream is upgraded.
func TestHIsStable(t *testing.T) {
	for _, c := range []struct{ name, spec, full string }{
		{"every field", "H H H H H H", "26 31 7 13 4 5"},
		{"seconds do not change the others", "H H H H H", "31 7 13 4 5"},
		{"a range", "H(0-29) H(9-17) * * H(1-5)", "1 16 * * 3"},
		{"a step", "H/15 H/6 * * *", "1-59/15 1-23/6 * * *"},
		{"a step in a range", "H(10-50)/10 * * * *", "11-50/10 * * * *"},
		{"twice in a list: evenly spread", "H(0-29),H(30-59) * * * *", "1,31 * * * *"},
		{"beside a number", "0,H * * * *", "0,31 * * * *"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if s := parse(t, c.spec, schedule.Options{Seed: "0a53fc1a-6f4c-4a7e-9d3b-5c2e8f1d7b90"}); s.String() != c.full {
				t.Errorf("%q is %q, not %q", c.spec, s, c.full)
			}
		})
	}
}

// TestHSpreads: of 6,000 objects each minute gets about a hundred, no hour more than another, and no minute of the day is left
// out because its hour and its minute are correlated.
func TestHSpreads(t *testing.T) {
	var minutes [60]int
	var hours [24]int
	times := map[string]bool{}
	for i := range 6000 {
		s := parse(t, "H H * * *", schedule.Options{Seed: fmt.Sprintf("0a53fc1a-6f4c-4a7e-9d3b-%012x", i)})
		next, _ := s.Next(time.Unix(0, 0))
		minutes[next.Minute()]++
		hours[next.Hour()]++
		times[next.Format("15:04")] = true
	}
	// Six standard deviations of a fair die: sqrt(6000 * 1/60 * 59/60) is 9.9, sqrt(6000 * 1/24 * 23/24) is 15.5.
	if slices.Min(minutes[:]) < 100-60 || slices.Max(minutes[:]) > 100+60 || slices.Min(hours[:]) < 250-93 || slices.Max(hours[:]) > 250+93 {
		t.Errorf("per minute %v, per hour %v", minutes, hours)
	}
	if len(times) < 1380 { // of 1440 about 1440 * (1 - exp(-6000/1440)) = 1418
		t.Errorf("%d different times of day", len(times))
	}
}

// FuzzParse: Parse returns for any text, and a schedule that it returns can be queried. Fields that Parse accepts, robfig/cron
// accepts, too.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{
		"30 2 * * *", "*/5 0 0 29 2 *", "H H(1-5)/2 H * MON", "@every 1h", "@weekly", "TZ=0", "CRON_TZ= *", "0 0 30 2 *", ", , , , ,", "*-5 ?/2 1/3 JAN-DEC/3 0",
		"99999999999999999999/18446744073709551615 * * * *", "0/9223372036854775807 * * * *", "H(-1-5) H() H(1-) * *", "0 0 31 2,4 *", "@every 2562047h47m16s", "\xff * * * *",
	} {
		f.Add(spec, "seed", int64(1_800_000_000), uint16(7))
	}
	all := zones(f)
	names := slices.Sorted(maps.Keys(all))
	f.Fuzz(func(t *testing.T, spec, seed string, now int64, z uint16) {
		o := schedule.Options{Location: all[names[int(z)%len(names)]], Seed: seed, Anchor: time.Unix(now/2, 0)}
		s, err := schedule.Parse(spec, o)
		if err != nil {
			var e *schedule.Error
			if !errors.As(err, &e) || e.Reason != schedule.InvalidSchedule {
				t.Fatalf("%q: %v", spec, err)
			}
			return
		}
		again, err := schedule.Parse(s.String(), o)
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is %q, which is %q, %v", spec, s, again, err)
		}
		from := time.Unix(now, 0)
		if next, ok := s.Next(from); ok {
			if prev, ok := s.Prev(next); !ok || !prev.Equal(next) || !next.After(from) || s.Count(from, next) != 1 {
				t.Fatalf("%q: after %v comes %v, up to which the last is %v, and %d lie between", spec, from, next, prev, s.Count(from, next))
			}
		}
		if !strings.HasPrefix(s.String(), "@every") {
			parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
			if _, err := parser.Parse(s.String()); err != nil {
				t.Fatalf("%q is %q, and to robfig/cron %v", spec, s, err)
			}
		}
	})
}

func parse(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, spec string, o schedule.Options) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(spec, o)
	if err != nil {
		t.Fatalf("%q: %v", spec, err)
	}
	return s
}
