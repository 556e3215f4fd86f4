package schedule

import (
	"math"
	"time"
)

// local is a set of readings of a wall clock in a zone. The zone is a sequence of spans in which the offset is constant:
//
//	utc    ----|------------------|-------------|----------
//	            from           to               a gap or a fold at each bar
//	wall = utc + offset
//
// Within a span a match is due at its reading minus the offset. Only the beginning of a span is special, and one number describes
// it, the reading that the clock had reached before:
//
//	reached < from + offset     a gap: the readings between the two fall to the instant from
//	reached > from + offset     a fold: the readings between the two have occurred before
type local struct {
	readings
	loc  *time.Location
	wild bool // follow the wall clock, whatever was reached before
}

// span is the instants from <= u < to (Unix seconds), in which the clock shows u + offset.
type span struct{ from, to, offset int64 }

func (l *local) next(from int64) (int64, bool) {
	for u := from; u <= latest; {
		s := spanAt(l.loc, u)
		w := l.reached(s)
		if u > s.from {
			w = max(w, u+s.offset)
		}
		if w, ok := l.readings.next(w); !ok {
			return 0, false
		} else if due := max(w-s.offset, s.from); due < s.to {
			return due, due <= latest
		}
		u = s.to
	}
	return 0, false
}

func (l *local) prev(upTo int64) (int64, bool) {
	for u := upTo; u >= earliest; {
		s := spanAt(l.loc, u)
		w, ok := l.readings.prev(u + s.offset)
		if !ok {
			return 0, false
		}
		if w >= l.reached(s) {
			return max(w-s.offset, s.from), true
		}
		u = s.from - 1
	}
	return 0, false
}

func (l *local) count(first, last int64) (n int64) {
	for u := first; u <= last; {
		s := spanAt(l.loc, u)
		reached, begin := l.reached(s), s.from+s.offset
		n += l.readings.count(max(reached, u+s.offset), min(s.to, last+1)+s.offset)
		if u == s.from && reached < begin && l.readings.count(reached, begin) > 0 && l.readings.count(begin, begin+1) == 0 {
			n++ // the one due to the gap, unless it coincides with a regular one
		}
		u = s.to
	}
	return n
}

// memory is how long before a span there can have been a later reading than at its beginning: longer than any two offsets of a
// zone differ. The largest difference is a day, where the date line moved (Manila 1844, Juneau 1867, Kwajalein 1969 and 1993).
const memory = 2 * daySeconds

// reached returns the reading that the clock has reached when a span begins: all before it have occurred.
func (l *local) reached(s span) int64 {
	if l.wild || s.from <= earliest {
		return s.from + s.offset
	}
	w := int64(math.MinInt64)
	for p := s; p.from > earliest && p.from > s.from-memory; {
		p = spanAt(l.loc, p.from-1)
		w = max(w, p.to+p.offset)
	}
	return w
}

// spanAt returns the span that contains the instant u.
//
// Time.ZoneBounds (Go 1.26) is exact near a transition only. After the last one of the zone's table it works year by year,
// and then both bounds need care: the beginning of the year may lie before the end of the table, and the last day of a leap
// year ends before it begins. A bound where the offset does not change is harmless.
func spanAt(loc *time.Location, u int64) span {
	s := bounds(loc, u)
	for before := bounds(loc, s.from); before.to > s.from && before.to <= u; before = bounds(loc, s.from) {
		s.from = before.to
	}
	if s.to <= u {
		day, _ := floorDiv(u, daySeconds)
		s.to = (day + 1) * daySeconds
	}
	return s
}

func bounds(loc *time.Location, u int64) span {
	t := time.Unix(u, 0).In(loc)
	_, offset := t.Zone()
	from, to := t.ZoneBounds()
	s := span{from: earliest, to: latest + 1, offset: int64(offset)}
	if !from.IsZero() {
		s.from = max(s.from, min(from.Unix(), u))
	}
	if !to.IsZero() {
		s.to = min(s.to, to.Unix())
	}
	return s
}

// both are times of day and readings that follow the wall clock, in one zone.
type both struct {
	tame, wild *local
	all        readings // of the two
}

func (b *both) next(from int64) (int64, bool) {
	u, ok := b.tame.next(from)
	if v, other := b.wild.next(from); other && (!ok || v < u) {
		return v, true
	}
	return u, ok
}

func (b *both) prev(upTo int64) (int64, bool) {
	u, ok := b.tame.prev(upTo)
	if v, other := b.wild.prev(upTo); other && (!ok || v > u) {
		return v, true
	}
	return u, ok
}

// count differs from local.count only where the clock was turned back: what it shows for the second time, the times of day leave
// out.
func (b *both) count(first, last int64) (n int64) {
	for u := first; u <= last; {
		s := spanAt(b.tame.loc, u)
		reached, begin, end := b.tame.reached(s), s.from+s.offset, min(s.to, last+1)+s.offset
		n += b.wild.readings.count(u+s.offset, min(reached, end))
		n += b.all.count(max(reached, u+s.offset), end)
		if u == s.from && reached < begin && b.tame.readings.count(reached, begin) > 0 && b.all.count(begin, begin+1) == 0 {
			n++
		}
		u = s.to
	}
	return n
}
