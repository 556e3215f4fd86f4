package schedule_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
)

func TestParseList(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		list schedule.List
		from string // the day from which on the next times are listed, in Berlin
		want string
		left string // the excluded times up to the last of want
	}{
		"two schedules that share a time": {
			list: schedule.List{Schedules: []string{"0 8,12 * * *", "0 12,20 * * *"}}, from: "2026-12-24",
			want: "24 08:00, 24 12:00, 24 20:00, 25 08:00",
		},
		"a holiday": {
			list: schedule.List{Schedules: []string{"30 2 * * *"}, Exclude: []string{"2026-12-25"}}, from: "2026-12-24",
			want: "24 02:30, 26 02:30, 27 02:30, 28 02:30", left: "25 02:30",
		},
		"a week, and Sundays": {
			list: schedule.List{Schedules: []string{"0 9 * * *"}, Exclude: []string{"2026-12-24/2026-12-26", "* * * * SUN"}}, from: "2026-12-23",
			want: "23 09:00, 28 09:00, 29 09:00, 30 09:00", left: "24 09:00, 25 09:00, 26 09:00, 27 09:00",
		},
		"hours, by minutes, of a schedule with seconds": {
			list: schedule.List{Schedules: []string{"20 0 * * * *"}, Exclude: []string{"* 1-21 * * *"}}, from: "2026-12-23",
			want: "23 00:00:20, 23 22:00:20, 23 23:00:20, 24 00:00:20", left: "23 01:00:20, 23 02:00:20, 23 03:00:20",
		},
		"a time of day that falls into a gap is excluded by its own reading": {
			list: schedule.List{Schedules: []string{"30 2 * * *", "0 12 * * *"}, Exclude: []string{"* 2 28 3 *"}}, from: "2027-03-28",
			want: "28 12:00, 29 02:30, 29 12:00, 30 02:30", left: "28 03:00",
		},
		"a name and H": {
			list: schedule.List{Schedules: []string{"@daily", "H(0-0) 6 * * *"}}, from: "2026-12-24",
			want: "25 00:00, 25 06:00, 26 00:00, 26 06:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schedule.ParseList(c.list, schedule.Options{Location: berlin, Seed: "seed"})
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.ParseInLocation(time.DateOnly, c.from, berlin)
			if err != nil {
				t.Fatal(err)
			}
			if c.from == "2026-12-24" && strings.Contains(c.want, "25 00:00") {
				at = at.Add(7 * time.Hour)
			}
			var want, left []string
			from, to := at, at
			for range 4 {
				to, _ = s.Next(to)
				want = append(want, short(to))
			}
			for u := range s.Excluded().All(from, to) {
				if left = append(left, short(u)); len(left) == strings.Count(c.left, ",")+1 {
					break
				}
			}
			if got := strings.Join(want, ", "); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
			if got := strings.Join(left, ", "); got != c.left {
				t.Errorf("excluded: %s, not %s", got, c.left)
			}
		})
	}
}

func short(t time.Time) string {
	return strings.TrimSuffix(t.Format("02 15:04:05"), ":00")
}

func TestParseListRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		list        schedule.List
		field, want string
	}{
		"no schedule":            {schedule.List{}, "schedules", "0 entries; write 1 to 10"},
		"too many":               {schedule.List{Schedules: slices.Repeat([]string{"@daily"}, 11)}, "schedules", "11 entries; write 1 to 10"},
		"too many exclusions":    {schedule.List{Schedules: []string{"@daily"}, Exclude: slices.Repeat([]string{"2026-12-24"}, 51)}, "exclude", "51 entries; write at most 50"},
		"a mistake in one":       {schedule.List{Schedules: []string{"@daily", "0 25 * * *"}}, "schedules[1]", "hour takes 0-23"},
		"@every beside another":  {schedule.List{Schedules: []string{"@every 1h", "@daily"}}, "schedules[0]", "it stands alone"},
		"@every with exclude":    {schedule.List{Schedules: []string{"@every 1h"}, Exclude: []string{"2026-12-24"}}, "schedules[0]", "it stands alone"},
		"not a date":             {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"24.12.2026"}}, "exclude[0]", "such as 2026-12-24"},
		"a day that is none":     {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"2027-02-29"}}, "exclude[0]", "such as 2026-12-24"},
		"an end before":          {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"2027-01-06/2026-12-24"}}, "exclude[0]", "write the earlier date first"},
		"more than a year":       {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"2026-01-01/2027-12-24"}}, "exclude[0]", "write several entries"},
		"three fields":           {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"* * *"}}, "exclude[0]", "five fields"},
		"a field out of range":   {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"* 24 * * *"}}, "exclude[0]", "hour takes 0-23"},
		"a text that is long":    {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{strings.Repeat("1", 257)}}, "exclude[0]", "257 characters are too long"},
		"everything is excluded": {schedule.List{Schedules: []string{"@daily"}, Exclude: []string{"* 0 * * *"}}, "exclude", "it leaves no time at all"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schedule.ParseList(c.list, schedule.Options{})
			var e *schedule.Error
			if !errors.As(err, &e) || e.Field != c.field || !strings.Contains(e.Message, c.want) {
				t.Errorf("%v, not %s: … %s", err, c.field, c.want)
			}
		})
	}
}

// TestExcludedDatesFarAway: what is excluded by a date is found from any distance, although a search ends after 41 years, and in whichever
// order the dates are written.
func TestExcludedDatesFarAway(t *testing.T) {
	for _, exclude := range [][]string{{"2200-05-01", "2026-12-24"}, {"2026-12-24", "2200-05-01"}} {
		s, err := schedule.ParseList(schedule.List{Schedules: []string{"0 0 * * *"}, Exclude: exclude}, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		left := s.Excluded()
		for _, c := range []struct{ from, next, prev string }{
			{"1980-01-01", "2026-12-24", ""},
			{"2027-01-01", "2200-05-01", "2026-12-24"},
			{"2500-01-01", "", "2200-05-01"},
		} {
			from, err := time.Parse(time.DateOnly, c.from)
			if err != nil {
				t.Fatal(err)
			}
			next, prev := "", ""
			if u, ok := left.Next(from); ok {
				next = u.Format(time.DateOnly)
			}
			if u, ok := left.Prev(from); ok {
				prev = u.Format(time.DateOnly)
			}
			if next != c.next || prev != c.prev {
				t.Errorf("%v, around %s: %q and %q, not %q and %q", exclude, c.from, prev, next, c.prev, c.next)
			}
		}
	}
}

// TestTheRarestDay: 29 February on a given weekday comes every 28 years, and not for 40 where a century has no leap year.
func TestTheRarestDay(t *testing.T) {
	s, err := schedule.ParseList(schedule.List{Schedules: []string{"0 0 29 2 *"}, Exclude: []string{"* * * * TUE-SAT,SUN"}}, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{"2026-01-01": "2044-02-29", "2044-03-01": "2072-02-29", "2072-03-01": "2112-02-29"} {
		at, err := time.Parse(time.DateOnly, from)
		if err != nil {
			t.Fatal(err)
		}
		if next, ok := s.Next(at); !ok || next.Format(time.DateOnly) != want {
			t.Errorf("after %s: %v, %v, not %s", from, next, ok, want)
		}
	}
}

func TestTheTextOfAList(t *testing.T) {
	for want, l := range map[string]schedule.List{
		"0 8 * * *; 0 20 * * *":                               {Schedules: []string{"0 8 * * *", "0 20 * * *"}},
		"0 8 * * *; 0 20 * * * except 2026-12-24; 2026-12-31": {Schedules: []string{"0 8 * * *", "0 20 * * *"}, Exclude: []string{"2026-12-24", "2026-12-31"}},
	} {
		s, err := schedule.ParseList(l, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// BenchmarkWorstList counts a year of the most expensive List: every second, with exclusions that make most days different.
func BenchmarkWorstList(b *testing.B) {
	l := schedule.List{}
	for i := range schedule.MaxSchedules {
		l.Schedules = append(l.Schedules, fmt.Sprintf("* * * %d-%d * %d", 1+i, 28-i, i%7))
	}
	for i := range schedule.MaxExclude {
		l.Exclude = append(l.Exclude, fmt.Sprintf("%d * * %d * %d", i, 1+i%28, i%6))
	}
	s, err := schedule.ParseList(l, schedule.Options{})
	if err != nil {
		b.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		s.Count(from, from.AddDate(1, 0, 0))
	}
}

// writeList invents a List, whose schedules and exclusions meet often.
func writeList(r *rand.Rand) schedule.List {
	var l schedule.List
	for range 1 + r.IntN(3) {
		l.Schedules = append(l.Schedules, write(r))
	}
	for range r.IntN(4) {
		first := time.Unix(r.Int64N(4e9), 0).UTC()
		switch r.IntN(4) {
		case 0:
			l.Exclude = append(l.Exclude, first.Format(time.DateOnly))
		case 1:
			l.Exclude = append(l.Exclude, first.Format(time.DateOnly)+"/"+first.AddDate(0, 0, r.IntN(365)).Format(time.DateOnly))
		case 2:
			l.Exclude = append(l.Exclude, fmt.Sprintf("* %d-%d * * *", r.IntN(3), 3+r.IntN(21)))
		default:
			l.Exclude = append(l.Exclude, write(r))
		}
	}
	return l
}

// newList returns a pair for a List, and one for what it excludes; none if the List is refused. H has a text of its own, so that
// the clock can be read without it.
func newList(r *round) (pairs []*pair) {
	l := writeList(r.random)
	var tame, wild, out []func(int64) bool
	for i, text := range l.Schedules {
		s, err := schedule.Parse(text, schedule.Options{Seed: "seed"})
		if err != nil {
			return nil
		}
		l.Schedules[i] = s.String()
		if n := read(s.String()); n.wild {
			wild = append(wild, n.matches)
		} else {
			tame = append(tame, n.matches)
		}
	}
	for i, text := range l.Exclude {
		if a, b, ok := strings.Cut(text, "/"); len(strings.Fields(text)) == 1 {
			if !ok {
				b = a
			}
			first, _ := time.Parse(time.DateOnly, a)
			last, _ := time.Parse(time.DateOnly, b)
			out = append(out, func(w int64) bool { return w >= first.Unix() && w < last.AddDate(0, 0, 1).Unix() })
			continue
		}
		s, err := schedule.Parse(text, schedule.Options{Seed: "seed"})
		if err != nil {
			return nil
		}
		l.Exclude[i] = s.String()
		if text = s.String(); len(strings.Fields(text)) == 5 {
			text = "* " + text
		}
		out = append(out, read(text).matches)
	}
	s, err := schedule.ParseList(l, schedule.Options{Location: r.zone})
	if err != nil {
		return nil
	}
	any := func(of []func(int64) bool, excluded bool) func(int64) bool {
		is := func(w int64) func(func(int64) bool) bool { return func(f func(int64) bool) bool { return f(w) } }
		return func(w int64) bool {
			return slices.ContainsFunc(of, is(w)) && slices.ContainsFunc(out, is(w)) == excluded
		}
	}
	spec := fmt.Sprintf("%q", l)
	pairs = append(pairs, &pair{spec: spec, schedule: s, tame: any(tame, false), wild: any(wild, false)})
	if len(l.Exclude) > 0 {
		pairs = append(pairs, &pair{spec: spec + " excluded", schedule: s.Excluded(), tame: any(tame, true), wild: any(wild, true)})
	}
	return pairs
}

// FuzzParseList: whatever users write, it is an error of the field that is wrong, or a set whose Next, Prev and Count agree, and whose
// excluded times are not among its times.
func FuzzParseList(f *testing.F) {
	for _, text := range []string{
		"30 2 * * *;H 4 * * MON", "@daily;0 0 * * *|2026-12-24;* 0-6 * * *", "* * * * * *|0-29 * * * * *", "0 0 29 2 *|* * * * SUN",
		"@every 1h|2026-12-24", "0 0 * * *|2026-02-30", "0 0 * * *|2027-01-06/2026-12-24", "|", ";;|;;", "* * * * *|* * * * *",
	} {
		f.Add(text, "seed", int64(1_800_000_000), uint16(7))
	}
	all := zones(f)
	names := slices.Sorted(maps.Keys(all))
	f.Fuzz(func(t *testing.T, text, seed string, now int64, z uint16) {
		in, out, _ := strings.Cut(text, "|")
		l := schedule.List{Schedules: strings.Split(in, ";")}
		if out != "" {
			l.Exclude = strings.Split(out, ";")
		}
		o := schedule.Options{Location: all[names[int(z)%len(names)]], Seed: seed, Anchor: time.Unix(now/2, 0)}
		s, err := schedule.ParseList(l, o)
		var e *schedule.Error
		if errors.As(err, &e) && (strings.HasPrefix(e.Field, "schedules") || strings.HasPrefix(e.Field, "exclude")) {
			return
		} else if err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		from := time.Unix(now, 0)
		for _, set := range []schedule.Schedule{s, s.Excluded()} {
			if next, ok := set.Next(from); ok {
				if prev, ok := set.Prev(next); !ok || !prev.Equal(next) || !next.After(from) || set.Count(from, next) != 1 {
					t.Fatalf("%q after %v: %v, Prev %v, Count %d", l, from, next, prev, set.Count(from, next))
				}
			}
		}
	})
}
