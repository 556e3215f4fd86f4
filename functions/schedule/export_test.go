package schedule

import "time"

// SpanAt lets the tests check how time is cut into spans.
func SpanAt(loc *time.Location, u int64) (from, to, offset int64) {
	s := spanAt(loc, u)
	return s.from, s.to, s.offset
}
