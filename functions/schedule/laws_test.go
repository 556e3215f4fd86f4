package schedule_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/functions/schedule"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

// TestLaws checks laws that every schedule keeps in every zone, whatever its times are; TestOracle checks that these are right.
func TestLaws(t *testing.T) {
	all := zones(t)
	names := slices.Sorted(maps.Keys(all))
	draws := uint64(1000)
	if testing.Short() {
		draws = 200
	}
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			for i := range draws {
				random := rand.New(rand.NewPCG(*seed+i, 1))
				text, loc, center := write(random), all[names[random.IntN(len(names))]], time.Unix(random.Int64N(12e9)-4e9, 0)
				if random.IntN(10) == 0 {
					text = fmt.Sprintf("@every %ds", 1+random.IntN(1_000_000))
				}
				o := schedule.Options{Location: loc, Seed: "seed", Anchor: center.AddDate(-3, 0, 0)}
				s, err := schedule.Parse(text, o)
				if random.IntN(4) == 0 {
					l := writeList(random)
					text = fmt.Sprintf("%q", l)
					if s, err = schedule.ParseList(l, o); random.IntN(3) == 0 {
						s = s.Excluded()
					}
				}
				if err != nil {
					continue // never due
				}
				var points []time.Time
				for range 3 {
					points = append(points, center.Add(time.Duration(random.Int64N(int64(2000*time.Hour)))))
				}
				slices.SortFunc(points, time.Time.Compare)
				if err := law(s, points[0], points[1], points[2]); err != nil {
					t.Fatalf("seed %d: %q (%s) in %s: %v", *seed+i, text, s, loc, err)
				}
			}
		})
	}
}

// laws are checks of a schedule with three times in order.
var laws = map[string]func(s schedule.Schedule, a, b, c time.Time) error{
	"Next is after, Prev is not, and nothing lies between": func(s schedule.Schedule, a, _, _ time.Time) error {
		next, ok := s.Next(a)
		if !ok {
			return nil // 29 February at the end of time
		}
		if back, ok := s.Prev(next); !ok || !back.Equal(next) {
			return fmt.Errorf("%v is due, and the last up to it is %v", next, back)
		}
		prev, ok := s.Prev(a)
		before, found := s.Prev(next.Add(-1))
		if !next.After(a) || prev.After(a) || ok != found || !prev.Equal(before) {
			return fmt.Errorf("%v is before %v, but the last before that is %v, not %v", a, next, before, prev)
		}
		if again, found := s.Next(prev); ok && (!found || !again.Equal(next)) {
			return fmt.Errorf("%v is followed by %v, not %v", prev, again, next)
		}
		return nil
	},
	"a later time has no earlier Next": func(s schedule.Schedule, a, b, _ time.Time) error {
		x, okX := s.Next(a)
		y, okY := s.Next(b)
		if okY && (!okX || y.Before(x)) {
			return fmt.Errorf("after %v comes %v, and after %v comes %v", a, x, b, y)
		}
		return nil
	},
	"All is in order, each once, in whole seconds, and Count is its length": func(s schedule.Schedule, a, b, _ time.Time) error {
		n, last := int64(0), a
		for due := range s.All(a, b) {
			if !due.After(last) || due.After(b) || due.Nanosecond() != 0 {
				return fmt.Errorf("after %v and up to %v comes %v", last, b, due)
			}
			n, last = n+1, due
			if n == 10_000 {
				return nil
			}
		}
		if count := s.Count(a, b); count != n {
			return fmt.Errorf("(%v, %v] has %d, and counts %d", a, b, n, count)
		}
		return nil
	},
	"two neighbouring ranges count as one": func(s schedule.Schedule, a, b, c time.Time) error {
		if x, y, z := s.Count(a, b), s.Count(b, c), s.Count(a, c); x+y != z || s.Count(b, a) != 0 {
			return fmt.Errorf("%d to %v, %d to %v, together %d", x, b, y, c, z)
		}
		return nil
	},
	"All stops when it is told": func(s schedule.Schedule, a, _, _ time.Time) error {
		for range s.All(a, a.AddDate(1000, 0, 0)) {
			break
		}
		return nil
	},
}

// TestEveryIsItsFormula: Anchor + k * d.
func TestEveryIsItsFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		anchor, step := rapid.Int64Range(-1e10, 1e10).Draw(t, "anchor"), rapid.Int64Range(1, 100).Draw(t, "step")
		s := parse(t, fmt.Sprintf("@every %ds", step), schedule.Options{Anchor: time.Unix(anchor, rapid.Int64Range(0, 999_999_999).Draw(t, "nano"))})
		from := anchor + rapid.Int64Range(-300, 300).Draw(t, "from")
		var want, got []int64
		for u := from + 1; u <= from+500; u++ {
			if u > anchor && (u-anchor)%step == 0 {
				want = append(want, u)
			}
		}
		for due := range s.All(at(from), at(from+500)) {
			got = append(got, due.Unix())
		}
		if !slices.Equal(got, want) || s.Count(at(from), at(from+500)) != int64(len(want)) {
			t.Fatalf("%v, not %v", got, want)
		}
	})
}

// TestRobfigAgrees compares with robfig/cron where the two have to agree: in UTC, and in any zone while its clock does not
// change. (robfig/cron gives up after five years, follows the wall clock with every schedule, and computes offsets in whole
// minutes.)
func TestRobfigAgrees(t *testing.T) {
	parser := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	all := zones(t)
	names := slices.Sorted(maps.Keys(all))
	random := rand.New(rand.NewPCG(*seed, 0))
	compared, passed := 0, 0
	for range 2000 {
		name := "UTC"
		if random.IntN(2) == 0 {
			name = names[random.IntN(len(names))]
		}
		s, err := schedule.Parse(write(random), schedule.Options{Location: all[name], Seed: "seed"})
		if err != nil {
			continue
		}
		parsed, err := parser.Parse(s.String())
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		theirs := parsed.(*cron.SpecSchedule)
		theirs.Location = all[name]
		now := time.Unix(random.Int64N(4e9), 0).In(all[name])
		for range 10 {
			next, _ := s.Next(now)
			if _, end := now.ZoneBounds(); next.Year() > now.Year()+4 || !end.IsZero() && next.AddDate(0, 0, 2).After(end) || offset(now)%60 != 0 || offset(now) != offset(next) {
				passed++
				now = next
				continue
			}
			if want := theirs.Next(now); !want.Equal(next) {
				t.Fatalf("%q in %s: after %v comes %v, and to robfig/cron %v", s, name, now, next, want)
			}
			compared++
			now = next
		}
	}
	t.Logf("%d times are the same, %d were passed over", compared, passed)
}

// TestNamesAreRobfigs: @daily and the like mean the same as in robfig/cron.
func TestNamesAreRobfigs(t *testing.T) {
	for _, name := range []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"} {
		theirs, err := cron.ParseStandard(name)
		if err != nil {
			t.Fatal(err)
		}
		now := at(1_800_000_000)
		if next, _ := parse(t, name, schedule.Options{}).Next(now); !next.Equal(theirs.Next(now)) {
			t.Errorf("%s: %v, and to robfig/cron %v", name, next, theirs.Next(now))
		}
	}
}

// TestHStaysInItsRange and is one number for one seed.
func TestHStaysInItsRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.String().Draw(t, "seed")
		low := rapid.IntRange(0, 59).Draw(t, "low")
		high := rapid.IntRange(low, 59).Draw(t, "high")
		spec := fmt.Sprintf("H(%d-%d) H H H H H", low, high)
		s := parse(t, spec, schedule.Options{Seed: seed})
		var second, minute, hour, dom, month, dow int
		if _, err := fmt.Sscanf(s.String(), "%d %d %d %d %d %d", &second, &minute, &hour, &dom, &month, &dow); err != nil {
			t.Fatal(err)
		}
		if second < low || second > high || minute > 59 || hour > 23 || dom < 1 || dom > 28 || month < 1 || month > 12 || dow > 6 {
			t.Fatalf("%q with seed %q is %q", spec, seed, s)
		}
		if again := parse(t, spec, schedule.Options{Seed: seed}); again.String() != s.String() {
			t.Fatalf("%q with seed %q is %q, and %q", spec, seed, s, again)
		}
	})
}

func offset(t time.Time) int {
	_, offset := t.Zone()
	return offset
}
