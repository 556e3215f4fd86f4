package progress

import (
	"fmt"
	"time"
)

// A rate is over the last samples in which something was done, at least a second apart: half a minute of a Job that is quick,
// half an hour of one that finishes something every minute.
const (
	maxSamples  = 30
	sampleEvery = time.Second
)

type sample struct {
	at   time.Time
	done int
}

// rate is the observed speed of a Job.
type rate struct {
	samples []sample
	done    int
}

// saw records how much is done. Idle time, in which the Job may not run, does not lower the rate.
func (r *rate) saw(done int, idle bool, now time.Time) {
	r.done = done
	if idle {
		r.samples = r.samples[:0]
	}
	if n := len(r.samples); n > 0 && (r.samples[n-1].done == done || now.Sub(r.samples[n-1].at) < sampleEvery) {
		return
	}
	r.samples = append(r.samples, sample{at: now, done: done})
	if len(r.samples) > maxSamples {
		r.samples = r.samples[1:]
	}
}

// perSecond returns 0 if it is too early to tell. It decreases while no work is finished.
func (r *rate) perSecond(now time.Time) float64 {
	if len(r.samples) == 0 {
		return 0
	}
	first := r.samples[0]
	took := now.Sub(first.at)
	if took < sampleEvery || r.done <= first.done {
		return 0
	}
	return float64(r.done-first.done) / took.Seconds()
}

// timeLeft estimates the time for the remaining work at the current rate; 0 if unknown.
func (k *job) timeLeft(now time.Time) time.Duration {
	const longest = 1000 * 24 * time.Hour
	perSecond := k.rate.perSecond(now)
	if k.over() || k.left() == 0 || perSecond <= 0 {
		return 0
	}
	seconds := float64(k.left()) / perSecond
	if seconds > longest.Seconds() {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// pace writes a rate in the unit that gives it a few digits.
func pace(perSecond float64) string {
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"min", 60}, {"h", 3600}} {
		switch n := perSecond * unit.seconds; {
		case n >= 9.95:
			return fmt.Sprintf("%.0f/%s", n, unit.name)
		case n >= 1:
			return fmt.Sprintf("%.1f/%s", n, unit.name)
		}
	}
	return ""
}

// span writes a duration in at most two units: 12s, 2m05s, 3h20m, 2d4h.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(0, d.Round(time.Second)); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}
