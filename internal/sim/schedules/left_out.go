package schedules

import (
	"time"

	"github.com/jobstream/jobstream/events"
)

// open are times without those that the ScheduledJob leaves out, or that lie outside of its window. It looks at one after the other.
type open struct {
	all  times
	left times // nil for none
	job  *events.ScheduledJob
}

func (o open) has(t time.Time) bool {
	return !t.Before(o.job.NotBefore) && (o.job.NotAfter.IsZero() || !t.After(o.job.NotAfter)) &&
		(o.left == nil || o.left.Count(t.Add(-time.Second), t) == 0)
}

func (o open) Next(after time.Time) (time.Time, bool) {
	for t, ok := o.all.Next(after); ok && (o.job.NotAfter.IsZero() || !t.After(o.job.NotAfter)); t, ok = o.all.Next(t) {
		if o.has(t) {
			return t, true
		}
	}
	return time.Time{}, false
}

func (o open) Prev(upTo time.Time) (time.Time, bool) {
	for t, ok := o.all.Prev(upTo); ok && !t.Before(o.job.NotBefore) && !t.Before(o.job.Created.AddDate(0, 0, -1)); t, ok = o.all.Prev(t.Add(-time.Second)) {
		if o.has(t) {
			return t, true
		}
	}
	return time.Time{}, false
}

func (o open) Count(from, to time.Time) (n int64) {
	if before := o.job.NotBefore.Add(-time.Second); before.After(from) {
		from = before
	}
	if after := o.job.NotAfter; !after.IsZero() && to.After(after) {
		to = after
	}
	if !to.After(from) {
		return 0
	}
	if n = o.all.Count(from, to); o.left != nil {
		n -= o.left.Count(from, to)
	}
	return n
}

// leaveOut chooses which times the ScheduledJob leaves out.
func (w *World) leaveOut(j *events.ScheduledJob) {
	j.Exclude, j.NotBefore, j.NotAfter = nil, time.Time{}, time.Time{}
	if !j.RunAt.IsZero() {
		return
	}
	soon := func(seconds int) time.Time {
		return w.Now.Truncate(time.Second).Add(time.Duration(w.random.IntN(seconds)) * time.Second)
	}
	if w.random.IntN(6) == 0 {
		j.NotBefore = soon(1200)
	}
	if w.random.IntN(6) == 0 {
		j.NotAfter = soon(7200).Add(20 * time.Minute)
	}
	if w.random.IntN(5) > 0 || j.Schedule == everySeven {
		return
	}
	for range 1 + w.random.IntN(2) {
		j.Exclude = append(j.Exclude, []string{"1-59/3 * * * *", "* 11 * * *", "30-59 * * * * *", "2026-07-02/2026-07-03", "10-20 * * * *"}[w.random.IntN(5)])
	}
	if w.random.IntN(3) == 0 {
		j.Schedules, j.Schedule = []string{j.Schedule, "*/7 * * * *"}, ""
	}
}

// leftOut checks the verdicts on times that are left out: their count is right, and there is no nominal time among them.
func (t *Truth) leftOut(v events.TickDecided) {
	last := v.Nominal
	if !v.Until.IsZero() {
		last = v.Until
	}
	out := t.world.Excluded()
	if out == nil {
		t.fail("%v, and no time is left out", v)
		return
	}
	from := v.Nominal.Add(-time.Second)
	if n, within := out.Count(from, last), t.world.Times().Count(from, last); n < v.Count || within > 0 {
		t.fail("%v should have count %d, and there are %d nominal times among them", v, n, within)
	}
}
