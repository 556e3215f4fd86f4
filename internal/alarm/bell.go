package alarm

import (
	"errors"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/schedule"
	"github.com/jobstream/jobstream/functions/scheduledjob"
)

const (
	// never is the next time of a bell that has nothing to ring for.
	never = math.MaxInt64
	// nowhere is the place of a bell that is not in the queue.
	nowhere = -1
)

// bell is one ScheduledJob. There may be very many, so it has no more than it needs. Times are Unix seconds.
type bell struct {
	uid       types.UID
	namespace string
	text      text
	times     times // nil: it cannot be read
	// decided is the nominal time up to which there is nothing to ring for, and rung the latest that it has rung for.
	decided, rung int64
	// next is what it rings for next, place where it stands in the queue.
	next  int64
	place int
}

// wind finds out what to ring for next. What it has rung for it does not ring for again, unless that lies in the future: then
// it was a clock that was ahead.
func (b *bell) wind(now int64) {
	b.next = never
	if b.times == nil {
		return
	}
	if next, ok := b.times.Next(time.Unix(max(b.decided, min(b.rung, now)), 0)); ok {
		b.next = next.Unix()
	}
}

// silent says that the ScheduledJob has nothing to be woken for.
func silent(j events.ScheduledJob) bool {
	return j.Deleting || j.Suspended || meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.FinishedCondition)
}

// decided is up to when there is nothing to ring for: what has a verdict, and what was before the ScheduledJob was made. Only
// runAt may be earlier.
func decided(j events.ScheduledJob) int64 {
	if t := j.Status.DecidedUntil; t != nil {
		return t.Unix()
	}
	if created := j.Created.Unix(); j.RunAt.IsZero() || j.RunAt.Unix() > created {
		return created
	}
	return j.RunAt.Unix() - 1
}

// text is what the times are made of: they are made anew when it changes. The rest that they are made of never does.
type text struct{ schedule, zone string }

func textOf(j events.ScheduledJob) text {
	switch {
	case j.Invalid != "":
		return text{schedule: "invalid: " + j.Invalid}
	case !j.RunAt.IsZero():
		return text{schedule: "at " + j.RunAt.UTC().Format(time.RFC3339) + " " + j.Schedule}
	}
	return text{j.Schedule, j.TimeZone}
}

// times are nominal times.
type times interface {
	// Next is the first after the given time, Prev the last at or before it.
	Next(after time.Time) (time.Time, bool)
	Prev(upTo time.Time) (time.Time, bool)
}

// timesOf reads when the ScheduledJob is due, as the function does (scheduledjob/cover.go).
func timesOf(j events.ScheduledJob, zones scheduledjob.Zones) (times, error) {
	switch {
	case j.Invalid != "":
		return nil, errors.New(j.Invalid)
	case !j.RunAt.IsZero() && j.Schedule != "":
		return nil, errors.New("it has both a schedule and runAt")
	case !j.RunAt.IsZero():
		return once(j.RunAt.Unix()), nil
	}
	zone, err := zones(j.TimeZone)
	if err != nil {
		return nil, err
	}
	s, err := schedule.Parse(j.Schedule, schedule.Options{Location: zone, Seed: string(j.UID), Anchor: j.Created})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// once is the one time of runAt.
type once int64

// Next implements times.
func (o once) Next(after time.Time) (time.Time, bool) {
	return time.Unix(int64(o), 0), int64(o) > after.Unix()
}

// Prev implements times.
func (o once) Prev(upTo time.Time) (time.Time, bool) {
	return time.Unix(int64(o), 0), int64(o) <= upTo.Unix()
}

// queue is a heap of bells, the next to ring first: a heap.Interface.
type queue []*bell

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].next < q[j].next }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(b any) {
	b.(*bell).place = len(*q)
	*q = append(*q, b.(*bell))
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	b := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	b.place = nowhere
	return b
}
