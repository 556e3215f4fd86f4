package schedule

import (
	"iter"
	"time"
)

// Nominal times lie in the years 1 to 9999 (UTC): RFC 3339, and so the Kubernetes API, can write no others.
var (
	earliest = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix()
)

// Schedule is a set of nominal times: whole seconds of the years 1 to 9999. It is immutable and safe for concurrent use. The zero
// value is the empty set. All times that it returns are in the Location of Options.
type Schedule struct {
	text     string
	loc      *time.Location
	times    times
	excluded times // that would be among the times; nil for none
}

// times is a set of Unix seconds from earliest to latest. Arguments are at most one beyond these.
type times interface {
	next(from int64) (int64, bool) // the first at or after from
	prev(upTo int64) (int64, bool) // the last at or before upTo
	count(first, last int64) int64 // how many from first to last, both included
}

// Next returns the first nominal time that is strictly after the given one; false if that lies after the year 9999.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	if s.times == nil {
		return time.Time{}, false
	}
	u, ok := s.times.next(floor(after) + 1)
	return s.time(u, ok)
}

// Prev returns the last nominal time at or before the given one; false before the first interval of @every has passed, or before
// the year 1.
func (s Schedule) Prev(upTo time.Time) (time.Time, bool) {
	if s.times == nil {
		return time.Time{}, false
	}
	u, ok := s.times.prev(floor(upTo))
	return s.time(u, ok)
}

// Count returns the number of nominal times in (from, to], 0 if to is not after from. It costs tens of microseconds for every ten
// years between the two, however many times there are.
func (s Schedule) Count(from, to time.Time) int64 {
	first, last := floor(from)+1, floor(to)
	if s.times == nil || first > last {
		return 0
	}
	return s.times.count(first, last)
}

// All yields the nominal times in (from, to] in order, each once. The caller may stop at any of them. Count returns beforehand
// how many there are.
func (s Schedule) All(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for t, ok := s.Next(from); ok && !t.After(to); t, ok = s.Next(t) {
			if !yield(t) {
				return
			}
		}
	}
}

// String returns the schedule in full: with a number in place of every H, and with fields in place of a name such as @daily. With
// the same Options it parses to the same Schedule.
func (s Schedule) String() string { return s.text }

func (s Schedule) time(u int64, ok bool) (time.Time, bool) {
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(u, 0).In(s.loc), true
}

// floor returns the second in which t lies, limited to the range from the second before the earliest to the latest.
func floor(t time.Time) int64 {
	return min(max(t.Unix(), earliest-1), latest)
}

// floorDiv returns a / b rounded down and the remainder, which is never negative. b > 0.
func floorDiv(a, b int64) (int64, int64) {
	q, r := a/b, a%b
	if r < 0 {
		return q - 1, r + b
	}
	return q, r
}
