package finding

import "time"

// Skew judges a clock by how far it is ahead of the local one (negative: behind), measured to within doubt. A difference within
// doubt is no skew.
func Skew(check string, ahead, doubt, warn, fail time.Duration) Finding {
	sure := max(ahead.Abs()-doubt, 0)
	const advice = "set both clocks by NTP: timers fire by the server's clock, and schedules are due by the local one"
	side := "ahead of"
	if ahead < 0 {
		side = "behind"
	}
	round := time.Millisecond
	switch {
	case sure >= fail:
		return Worry(check, Fail, advice, "%v %s the local clock, give or take %v", ahead.Abs().Round(round), side, doubt.Round(round))
	case sure >= warn:
		return Worry(check, Warn, advice, "%v %s the local clock, give or take %v", ahead.Abs().Round(round), side, doubt.Round(round))
	}
	return Good(check, "within %v of the local clock", (ahead.Abs() + doubt).Round(round))
}
