package schedule

import (
	"math/bits"
	"time"
)

// readings is a set of readings of a wall clock: see calendar, which is one.
type readings interface {
	next(w int64) (int64, bool) // the first at or after w
	prev(w int64) (int64, bool) // the last at or before w
	count(a, b int64) (n int64) // how many in [a, b)
}

// part is a set of readings that a mix consists of, day by day.
type part interface {
	days(y int, m time.Month) uint64 // the days of a month on which it has readings: bits 1 to 31
	mark(d *seconds)                 // adds its readings of such a day to d
}

// mix is the set of the readings that any of its parts has, apart from those that it excludes; or else the excluded ones alone.
//
//	in       -----xx---xx------xx---
//	except   ---------xxxxxx--------
//	mix      -----xx-----------xx---
//	left     ----------xx-----------
//
// Days on which the same parts have readings have the same readings, so to count them is cheap: the number of seconds in a day is
// computed once for each such set of parts.
type mix struct {
	in, except []part // at most 64 together
	left       bool
	search     int // how many months there may be between two readings that do not come from dates
}

// seconds are the readings of one day: one word for each minute, one bit for each second of it.
type seconds [24 * 60]uint64

func (c *calendar) mark(d *seconds) {
	for hours := c.hour; hours != 0; hours &= hours - 1 {
		h := bits.TrailingZeros64(hours) * 60
		for minutes := c.minute; minutes != 0; minutes &= minutes - 1 {
			d[h+bits.TrailingZeros64(minutes)] |= c.second
		}
	}
}

// dates are all readings of the days from first to last, both included, numbered from 1 January 1970.
type dates struct{ first, last int64 }

func (p dates) days(y int, m time.Month) uint64 {
	before := date(y, m, 1)/daySeconds - 1 // the day before the first of the month
	end := date(y, m+1, 1)/daySeconds - 1 - before
	from, to := max(p.first-before, 1), min(p.last-before, end)
	if from > to {
		return 0
	}
	return below(int(to)+1) &^ below(int(from))
}

func (dates) mark(d *seconds) {
	for m := range d {
		d[m] = below(60)
	}
}

// walk goes through the days of a mix. It remembers how many readings the days have on which the same parts have some.
type walk struct {
	*mix
	sizes map[uint64]int64
	y     int
	m     time.Month
	of    []uint64 // the days of month m of year y, for each part
	any   uint64   // the days that may have readings
}

func (x *mix) walk() *walk {
	return &walk{mix: x, of: make([]uint64, len(x.in)+len(x.except))}
}

// to goes to a month, and returns its days that may have readings.
func (w *walk) to(y int, m time.Month) uint64 {
	w.y, w.m, w.any = y, m, 0
	for i, p := range w.in {
		w.of[i] = p.days(y, m)
		w.any |= w.of[i]
	}
	for i, p := range w.except {
		w.of[len(w.in)+i] = p.days(y, m)
	}
	return w.any
}

// parts returns which parts have readings on a day of the month: one bit for each.
func (w *walk) parts(d int) (set uint64) {
	for i, days := range w.of {
		set |= days >> d & 1 << i
	}
	return set
}

// day returns the readings of a day on which these parts have some.
func (w *walk) day(parts uint64) *seconds {
	var in, out seconds
	for i, p := range w.in {
		if has(parts, i) {
			p.mark(&in)
		}
	}
	for i, p := range w.except {
		if has(parts, len(w.in)+i) {
			p.mark(&out)
		}
	}
	for m := range in {
		if w.left {
			in[m] &= out[m]
		} else {
			in[m] &^= out[m]
		}
	}
	return &in
}

// size returns how many readings a day of the month has.
func (w *walk) size(d int) int64 {
	if !has(w.any, d) {
		return 0
	}
	parts := w.parts(d)
	n, known := w.sizes[parts]
	if !known {
		n = w.day(parts).rank(daySeconds)
		w.remember(parts, n)
	}
	return n
}

// find looks for a reading of a day of the month. Many days in a row may have none.
func (w *walk) find(d int, in func(*seconds) (int64, bool)) (int64, bool) {
	parts := w.parts(d)
	if n, known := w.sizes[parts]; known && n == 0 {
		return 0, false
	}
	day := w.day(parts)
	if found, ok := in(day); ok {
		return found, true
	}
	w.remember(parts, day.rank(daySeconds))
	return 0, false
}

func (w *walk) remember(parts uint64, size int64) {
	if w.sizes == nil {
		w.sizes = map[uint64]int64{}
	}
	w.sizes[parts] = size
}

// rank returns how many readings there are before the s-th second of the day, 0 <= s <= 86400.
func (d *seconds) rank(s int64) (n int64) {
	minute := int(s / 60)
	for _, word := range d[:minute] {
		n += size(word)
	}
	if minute < len(d) {
		n += size(d[minute] & below(int(s%60)))
	}
	return n
}

// from returns the first reading at or after the s-th second of the day.
func (d *seconds) from(s int64) (int64, bool) {
	keep := ^below(int(s % 60))
	for m := s / 60; m < int64(len(d)); m++ {
		if word := d[m] & keep; word != 0 {
			return m*60 + int64(bits.TrailingZeros64(word)), true
		}
		keep = ^uint64(0)
	}
	return 0, false
}

// upTo returns the last reading at or before the s-th second of the day.
func (d *seconds) upTo(s int64) (int64, bool) {
	keep := below(int(s%60) + 1)
	for m := s / 60; m >= 0; m-- {
		if word := d[m] & keep; word != 0 {
			return m*60 + int64(bits.Len64(word)-1), true
		}
		keep = ^uint64(0)
	}
	return 0, false
}

func (x *mix) next(w int64) (int64, bool) {
	walk := x.walk()
	_, s, y, m, d := split(w)
	for i := range x.search {
		days := walk.to(y, m)
		if i == 0 {
			days &^= below(d)
		} else {
			d = 0
		}
		for ; days != 0; days &= days - 1 {
			on := bits.TrailingZeros64(days)
			if on != d {
				s = 0
			}
			if found, ok := walk.find(on, func(day *seconds) (int64, bool) { return day.from(s) }); ok {
				return date(y, m, on) + found, true
			}
		}
		y, m = month(y, m+1)
	}
	return x.resume(w)
}

// resume returns the first reading after w that is excluded by dates far away.
func (x *mix) resume(w int64) (int64, bool) {
	first, found := int64(0), false
	for _, p := range x.except {
		if p, ok := p.(dates); ok && x.left && p.first*daySeconds > w && (!found || p.first*daySeconds < first) {
			first, found = p.first*daySeconds, true
		}
	}
	if !found {
		return 0, false
	}
	return x.next(first)
}

// resumeBack returns the last reading before w that is excluded by dates far away.
func (x *mix) resumeBack(w int64) (int64, bool) {
	last, found := int64(0), false
	for _, p := range x.except {
		if p, ok := p.(dates); ok && x.left && (p.last+1)*daySeconds <= w && (!found || (p.last+1)*daySeconds > last) {
			last, found = (p.last+1)*daySeconds, true
		}
	}
	if !found {
		return 0, false
	}
	return x.prev(last - 1)
}

func (x *mix) prev(w int64) (int64, bool) {
	walk := x.walk()
	_, s, y, m, d := split(w)
	for i := range x.search {
		days := walk.to(y, m)
		if i == 0 {
			days &= below(d + 1)
		} else {
			d = 0
		}
		for ; days != 0; days &= below(bits.Len64(days) - 1) {
			on := bits.Len64(days) - 1
			if on != d {
				s = daySeconds - 1
			}
			if found, ok := walk.find(on, func(day *seconds) (int64, bool) { return day.upTo(s) }); ok {
				return date(y, m, on) + found, true
			}
		}
		y, m = month(y, m-1)
	}
	return x.resumeBack(w)
}

func (x *mix) count(a, b int64) (n int64) {
	if a >= b {
		return 0
	}
	walk := x.walk()
	_, second, y, m, d := split(a)
	walk.to(y, m)
	n = -walk.before(d, second)
	_, second, lastYear, lastMonth, d := split(b)
	for y != lastYear || m != lastMonth {
		for days := walk.any; days != 0; days &= days - 1 {
			n += walk.size(bits.TrailingZeros64(days))
		}
		y, m = month(y, m+1)
		walk.to(y, m)
	}
	return n + walk.before(d, second)
}

// before returns how many readings the month has before that second of that day.
func (w *walk) before(d int, second int64) (n int64) {
	for days := w.any & below(d); days != 0; days &= days - 1 {
		n += w.size(bits.TrailingZeros64(days))
	}
	if w.size(d) > 0 {
		n += w.day(w.parts(d)).rank(second)
	}
	return n
}
