package schedule_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
)

var (
	long   = flag.Bool("long", false, "TestOracle checks every change of a clock in ten years, and TestTenYears runs")
	seed   = flag.Uint64("seed", 1, "where the random rounds of TestOracle and TestTenYears begin")
	rounds = flag.Int("rounds", 0, "how many rounds TestOracle and TestTenYears run; 0 is their own number")
)

// perRound is how many expressions a round checks in its zone.
const perRound = 10

// TestOracle compares random expressions in random zones with a clock that is read second by second: within three days of the
// changes of that clock in ten years, and in a random month. The long form (-long) checks 4,000 pairs of an expression and a zone
// at every change; the short one checks 150 at one change each, and three days for the month; and "go test -short" a third of that.
func TestOracle(t *testing.T) {
	n := 15
	switch {
	case *long:
		n = 4000 / perRound
	case testing.Short():
		n = 5
	}
	run(t, n, nil, changes)
}

// TestMadeUpClocks does the same with invented clocks: changed by anything up to a day and a quarter, and up to four times a day.
func TestMadeUpClocks(t *testing.T) {
	n := 6
	switch {
	case *long:
		n = 100
	case testing.Short():
		n = 2
	}
	run(t, n, madeUp, changes)
}

// TestTenYears does the same for ten whole years: 50 pairs of an expression and a zone.
func TestTenYears(t *testing.T) {
	if !*long {
		t.Skip("minutes; go test -long")
	}
	run(t, 5, nil, func(r *round) {
		r.decade()
		r.watch(r.from, r.to)
	})
}

func changes(r *round) {
	changes := r.decade()
	if !*long && len(changes) > 1 {
		changes = changes[r.random.IntN(len(changes)):][:1]
	}
	for _, change := range changes {
		r.watch(change-3*day, change+3*day)
	}
	days := int64(3)
	if *long {
		days = 31
	}
	from := r.from + r.random.Int64N(r.to-r.from-days*day)
	r.watch(from, from+days*day)
}

// run runs the rounds in zones of the database, or others, and prints how to repeat the one that failed.
func run(t *testing.T, n int, clock func(*rand.Rand) *time.Location, do func(*round)) {
	if *rounds > 0 {
		n = *rounds
	}
	if clock == nil {
		all := zones(t)
		names := slices.Sorted(maps.Keys(all))
		clock = func(r *rand.Rand) *time.Location { return all[names[r.IntN(len(names))]] }
	}
	var watched, due atomic.Int64
	next := make(chan uint64)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for s := range next {
				r := newRound(clock, s)
				if r.err == nil {
					do(r)
				}
				if r.err != nil {
					form := ""
					if *long {
						form = " -long"
					}
					t.Errorf("%v\nreplay: go test ./functions/schedule -run '^%s$' -seed=%d -rounds=1%s", r.err, t.Name(), s, form)
				}
				watched.Add(r.seconds)
				due.Add(r.due)
			}
		})
	}
	for i := range n {
		next <- *seed + uint64(i)
	}
	close(next)
	group.Wait()
	t.Logf("%d pairs of expression and zone, from seed %d on: %d million seconds watched, %d nominal times", n*perRound, *seed, watched.Load()/1e6, due.Load())
}

// round has some expressions in one zone, and everything that follows from the seed.
type round struct {
	random       *rand.Rand
	zone         *time.Location
	pairs        []*pair
	from, to     int64 // ten years
	seconds, due int64
	err          error
}

const (
	day    = int64(24 * 60 * 60)
	decade = 3652 * day
)

func newRound(clock func(*rand.Rand) *time.Location, seed uint64) *round {
	r := &round{random: rand.New(rand.NewPCG(seed, 0))}
	r.zone = clock(r.random)
	for len(r.pairs) < perRound {
		if r.random.IntN(4) == 0 {
			r.pairs = append(r.pairs, newList(r)...)
			continue
		}
		spec := write(r.random)
		s, err := schedule.Parse(spec, schedule.Options{Location: r.zone, Seed: fmt.Sprint(seed)})
		switch {
		case err == nil:
			r.pairs = append(r.pairs, newPair(spec, s))
		case !strings.Contains(err.Error(), "never due"):
			r.err = fmt.Errorf("%q is refused: %w", spec, err)
			return r
		case !strings.Contains(spec, "H"):
			for n, d := read(spec), int64(0); d < 3652*3; d++ {
				if n.onDay(d) {
					r.err = fmt.Errorf("%q is due on %v: %w", spec, at(d*day), err)
				}
			}
		}
	}
	return r
}

// decade chooses ten years, those around now or any others since clocks had zones, and finds where the clock is changed in
// them. Years without a change are mostly passed over.
func (r *round) decade() (changes []int64) {
	for range 5 {
		year := 2020
		if r.random.IntN(2) == 0 {
			year = 1860 + r.random.IntN(230)
		}
		r.from = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		r.to = r.from + decade
		_, last := at(r.from).In(r.zone).Zone()
		for u := r.from; u < r.to; u += 900 {
			if _, offset := at(u).In(r.zone).Zone(); offset != last {
				changes, last = append(changes, u), offset
			}
		}
		if len(changes) > 0 {
			break
		}
	}
	return changes
}

// watch reads the clock of the zone at each second of [from, to), and of the two days before to know what it has shown already.
func (r *round) watch(from, to int64) {
	const week = 7 * day
	clock := make([]int64, 0, week)
	for start, stop := from-2*day, from; start < to && r.err == nil; start, stop = stop, min(stop+week, to) {
		clock = clock[:0]
		for u := start; u < stop; u++ {
			_, offset := time.Unix(u, 0).In(r.zone).Zone()
			clock = append(clock, u+int64(offset))
		}
		for _, p := range r.pairs {
			if start < from {
				p.begin(from, clock)
				continue
			}
			due, err := p.compare(start, clock, r.random)
			if err != nil {
				r.err = fmt.Errorf("%q (%s) in %s: %w", p.spec, p.schedule, r.zone, err)
				return
			}
			r.seconds += stop - start
			r.due += int64(due)
		}
	}
}

// pair is an expression in the zone of its round, and how far it has been compared.
type pair struct {
	spec     string
	schedule schedule.Schedule
	// tame and wild report whether a reading is a time of day that matches, or one that matches and follows the wall clock.
	tame, wild func(w int64) bool
	from       int64 // where watching began
	shown      int64 // the latest that the clock has shown
	expected   int64
	total      int64
	last       int64
}

func newPair(spec string, s schedule.Schedule) *pair {
	n, none := read(s.String()), func(int64) bool { return false }
	if n.wild {
		return &pair{spec: spec, schedule: s, tame: none, wild: n.matches}
	}
	return &pair{spec: spec, schedule: s, tame: n.matches, wild: none}
}

func (p *pair) begin(from int64, clock []int64) {
	p.from, p.shown, p.total, p.last = from, slices.Max(clock), 0, -1<<62
	p.expected = p.next(from - 1)
}

func (p *pair) next(u int64) int64 {
	next, _ := p.schedule.Next(at(u))
	return next.Unix()
}

// compare goes on through the seconds from start on. It derives from the clock when the schedule is due, by the two rules of the
// package's documentation; Next has to return the same. Then it compares Prev and Count in random places.
func (p *pair) compare(start int64, clock []int64, random *rand.Rand) (int, error) {
	var due []int64
	for i, shows := range clock {
		u := start + int64(i)
		is := p.wild(shows)
		for ; p.shown < shows; p.shown++ {
			is = is || p.tame(p.shown+1)
		}
		if is != (p.expected == u) {
			return 0, fmt.Errorf("at %v, when the clock shows %v: due is %v, and Next %v", at(u), at(shows).Format(time.DateTime), is, at(p.expected))
		}
		if is {
			due = append(due, u)
			if prev, _ := p.schedule.Prev(at(u)); prev.Unix() != u {
				return 0, fmt.Errorf("%v is due, and the last up to it is %v", at(u), prev)
			}
			p.expected = p.next(u)
		}
	}
	p.total += int64(len(due))
	stop := start + int64(len(clock)) - 1
	if n := p.schedule.Count(at(p.from-1), at(stop)); n != p.total {
		return 0, fmt.Errorf("from %v to %v: %d, and Count %d", at(p.from), at(stop), p.total, n)
	}
	for range 20 {
		a, b := start+random.Int64N(int64(len(clock))), start+random.Int64N(int64(len(clock)))
		a, b = min(a, b), max(a, b)
		i, _ := slices.BinarySearch(due, a+1)
		j, _ := slices.BinarySearch(due, b+1)
		if n := p.schedule.Count(at(a), at(b)); n != int64(j-i) {
			return 0, fmt.Errorf("in (%v, %v]: %d, and Count %d", at(a), at(b), j-i, n)
		}
		last := p.last
		if j > 0 {
			last = due[j-1]
		}
		if prev, ok := p.schedule.Prev(at(b)); !ok && last >= p.from || ok && (last >= p.from || prev.Unix() >= p.from) && prev.Unix() != last {
			return 0, fmt.Errorf("up to %v: %v, and Prev %v", at(b), at(last), prev)
		}
	}
	if len(due) > 0 {
		p.last = due[len(due)-1]
	}
	return len(due), nil
}
