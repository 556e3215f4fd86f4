package alarm

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
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
	times     scheduledjob.Times // nil: it cannot be read
	// decided is the nominal time up to which there is nothing to ring for, and rung the latest that it has rung for.
	decided, rung int64
	// next is what it rings for next, place where it stands in the queue.
	next  int64
	place int
}

// setNext finds out what to ring for next. What it has rung for it does not ring for again, unless that lies in the future: then
// it was a clock that was ahead.
func (b *bell) setNext(now int64) {
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
	finished := meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.FinishedCondition) && j.Status.ObservedGeneration == j.Generation
	return j.Deleting || j.Suspended || finished
}

// decided is up to when there is nothing to ring for: what has a verdict, and what was before the ScheduledJob was made.
func decided(j events.ScheduledJob) int64 {
	if t := j.Status.DecidedUntil; t != nil {
		return t.Unix()
	}
	return scheduledjob.Beginning(j).Unix()
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
