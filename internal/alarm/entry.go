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
	// never is the next time of an entry without one.
	never = math.MaxInt64
	// nowhere is the place of an entry that is not in the queue.
	nowhere = -1
)

// entry is one ScheduledJob. There may be very many, so it holds no more than it needs. Times are Unix seconds.
type entry struct {
	uid       types.UID
	namespace string
	text      string
	times     scheduledjob.Times // nil if the schedule is invalid
	// decided is the nominal time up to which no notice is needed, notified that of the last notice.
	decided, notified int64
	// next is the nominal time of the next notice, place its index in the queue.
	next  int64
	place int
}

// setNext computes the nominal time of the next notice. It repeats none, unless the last one lies in the future, because then it
// came from a clock that was ahead.
func (b *entry) setNext(now int64) {
	b.next = never
	if b.times == nil {
		return
	}
	if next, ok := b.times.Next(time.Unix(max(b.decided, min(b.notified, now)), 0)); ok {
		b.next = next.Unix()
	}
}

// silent reports whether the ScheduledJob needs no notices.
func silent(j events.ScheduledJob) bool {
	finished := meta.IsStatusConditionTrue(j.Status.Conditions, v1alpha1.FinishedCondition) && j.Status.ObservedGeneration == j.Generation
	return j.Deleting || j.Stopped() || finished
}

// decided returns the time up to which no notice is needed: the nominal times that have a verdict, and those before the ScheduledJob
// was made.
func decided(j events.ScheduledJob) int64 {
	if t := j.Status.DecidedUntil; t != nil {
		return t.Unix()
	}
	return scheduledjob.Beginning(j).Unix()
}

// textOf returns the part of the spec from which the times are parsed; a change parses them again.
func textOf(j events.ScheduledJob) string {
	if j.Invalid != "" {
		return "invalid: " + j.Invalid
	}
	return scheduledjob.Text(j)
}

// queue is a heap of entries, the next due first: a heap.Interface.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].next < q[j].next }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(b any) {
	b.(*entry).place = len(*q)
	*q = append(*q, b.(*entry))
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
