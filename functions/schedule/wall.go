package schedule

import (
	"math/bits"
	"time"
)

// calendar has the six fields of a cron expression: sets of numbers, one bit for each number. It determines which readings of a
// wall clock match, without a zone. A reading is a number of seconds, too: the Unix time at which a clock in UTC shows it.
//
// Within a day everything is rank and select: rank is the number of matching seconds before one, nth is the one with a given
// number of others before it. Within a year everything is one set of days for each month.
type calendar struct {
	second, minute, hour, dom, month, dow uint64
	either                                bool // day of month or day of week suffices: neither is a star
}

// searchMonths is how far away a matching day can be: 29 February 2096 is followed by that of 2104. A date that does not occur in
// this many months never occurs.
const searchMonths = 8*12 + 1

const daySeconds = 24 * 60 * 60

// next returns the first matching reading at or after w.
func (c *calendar) next(w int64) (int64, bool) {
	midnight, s, y, m, d := split(w)
	days := c.days(y, m)
	if has(days, d) {
		if k := c.rank(s); k < c.size() {
			return midnight + c.nth(k), true
		}
	}
	days &^= below(d + 1)
	for range searchMonths {
		if days != 0 {
			return date(y, m, bits.TrailingZeros64(days)) + c.nth(0), true
		}
		y, m = month(y, m+1)
		days = c.days(y, m)
	}
	return 0, false
}

// prev returns the last matching reading at or before w.
func (c *calendar) prev(w int64) (int64, bool) {
	midnight, s, y, m, d := split(w)
	days := c.days(y, m)
	if has(days, d) {
		if k := c.rank(s + 1); k > 0 {
			return midnight + c.nth(k-1), true
		}
	}
	days &= below(d)
	for range searchMonths {
		if days != 0 {
			return date(y, m, bits.Len64(days)-1) + c.nth(c.size()-1), true
		}
		y, m = month(y, m-1)
		days = c.days(y, m)
	}
	return 0, false
}

// count returns the number of matching readings in [a, b).
func (c *calendar) count(a, b int64) (n int64) {
	if a >= b {
		return 0
	}
	sinceFirst := func(w int64) (int, time.Month, int64) {
		_, s, y, m, d := split(w)
		days := c.days(y, m)
		n := size(days&below(d)) * c.size()
		if has(days, d) {
			n += c.rank(s)
		}
		return y, m, n
	}
	y, m, skip := sinceFirst(a)
	lastYear, lastMonth, rest := sinceFirst(b)
	for y != lastYear || m != lastMonth {
		n += size(c.days(y, m)) * c.size()
		y, m = month(y, m+1)
	}
	return n - skip + rest
}

// days returns the set of days of a month that match: bits 1 to 31.
func (c *calendar) days(y int, m time.Month) uint64 {
	if !has(c.month, int(m)) {
		return 0
	}
	first, next := date(y, m, 1)/daySeconds, date(y, m+1, 1)/daySeconds
	_, weekday := floorDiv(first+int64(time.Thursday), 7) // 1 January 1970 was a Thursday
	const weeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	dow := c.dow * weeks >> weekday << 1 // bit 1 is the weekday of the first
	days := c.dom & dow
	if c.either {
		days = c.dom | dow
	}
	return days & below(int(next-first)+1)
}

// size returns the number of matching seconds in a day that matches.
func (c *calendar) size() int64 { return size(c.hour) * size(c.minute) * size(c.second) }

// rank returns the number of matching seconds of a day before its s-th, 0 <= s <= 86400.
func (c *calendar) rank(s int64) int64 {
	h, m, x := int(s/3600), int(s/60%60), int(s%60)
	perMinute := size(c.second)
	n := size(c.hour&below(h)) * size(c.minute) * perMinute
	if has(c.hour, h) {
		n += size(c.minute&below(m)) * perMinute
		if has(c.minute, m) {
			n += size(c.second & below(x))
		}
	}
	return n
}

// nth returns the matching second of a day with k others before it, 0 <= k < size.
func (c *calendar) nth(k int64) int64 {
	perMinute := size(c.second)
	perHour := size(c.minute) * perMinute
	return nth(c.hour, k/perHour)*3600 + nth(c.minute, k%perHour/perMinute)*60 + nth(c.second, k%perMinute)
}

// Sets: bit n is the number n.

func has(set uint64, n int) bool { return set>>n&1 == 1 }
func below(n int) uint64         { return 1<<n - 1 }
func size(set uint64) int64      { return int64(bits.OnesCount64(set)) }

func nth(set uint64, k int64) int64 {
	for range k {
		set &= set - 1 // remove the smallest
	}
	return int64(bits.TrailingZeros64(set))
}

// The Gregorian calendar.

func split(w int64) (midnight, second int64, y int, m time.Month, d int) {
	day, second := floorDiv(w, daySeconds)
	y, m, d = time.Unix(w, 0).UTC().Date()
	return day * daySeconds, second, y, m, d
}

func date(y int, m time.Month, d int) int64 { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() }

// month treats the 13th month as the first of the next year, and the 0th as the last of the previous one.
func month(y int, m time.Month) (int, time.Month) {
	switch m {
	case 0:
		return y - 1, 12
	case 13:
		return y + 1, 1
	}
	return y, m
}
