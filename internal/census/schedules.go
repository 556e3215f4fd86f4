package census

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// Schedule is what kube-state-metrics shows of a CronJob, of a ScheduledJob.
type Schedule struct {
	Namespace, Name string
	// Schedule is empty for a ScheduledJob with runAt, and has all schedules of one with several, separated by "; ". TimeZone is "UTC" by
	// default.
	Schedule, TimeZone, ConcurrencyPolicy string
	Suspended                             bool
	// StartingDeadlineSeconds is nil for none.
	StartingDeadlineSeconds      *int64
	SuccessfulLimit, FailedLimit int32
	Active                       int
	// Created, Next, LastScheduled and LastSuccessful are zero if there is no such time.
	Created, Next, LastScheduled, LastSuccessful time.Time

	uid   types.UID
	place int // its index in the heap
}

// Schedules returns what is known of the ScheduledJobs, by namespace and name; of two with the same name the younger.
func (c *Census) Schedules() []Schedule {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Schedule, 0, len(c.schedules.youngest))
	for _, s := range c.schedules.youngest {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Schedule) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), b.Created.Compare(a.Created), cmp.Compare(b.uid, a.uid))
	})
	return slices.CompactFunc(out, func(a, b Schedule) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
}

// ListedSchedules replaces what is known of ScheduledJobs by a complete list.
func (c *Census) ListedSchedules(all iter.Seq[*events.ScheduledJob]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schedules.reset(c.config.Schedules)
	for j := range all {
		c.schedules.put(*j)
	}
}

// SawSchedule records an observation of a ScheduledJob.
func (c *Census) SawSchedule(j events.ScheduledJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schedules.put(j)
}

// MissedSchedule records that the ScheduledJob is gone.
func (c *Census) MissedSchedule(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schedules.remove(uid)
}

// schedules are the oldest ScheduledJobs, at most a number of them: a user who creates very many displaces none that was there
// before, and two triggers show the same ones. One that was left out is shown, if there is room again, from its next change on.
type schedules struct {
	most     int
	all      map[types.UID]*Schedule
	youngest youth
}

func (s *schedules) reset(most int) { *s = schedules{most: most, all: map[types.UID]*Schedule{}} }

func (s *schedules) put(j events.ScheduledJob) {
	if s.most <= 0 {
		return
	}
	next := scheduleOf(j)
	if old := s.all[j.UID]; old != nil {
		next.place = old.place
		*old = next
		return
	}
	if len(s.youngest) == s.most {
		if !younger(s.youngest[0], &next) {
			return
		}
		delete(s.all, s.youngest[0].uid)
		heap.Pop(&s.youngest)
	}
	s.all[j.UID] = &next
	heap.Push(&s.youngest, &next)
}

func (s *schedules) remove(uid types.UID) {
	if old := s.all[uid]; old != nil {
		heap.Remove(&s.youngest, old.place)
		delete(s.all, uid)
	}
}

func scheduleOf(j events.ScheduledJob) Schedule {
	return Schedule{Namespace: j.Namespace, Name: j.Name, Schedule: cut(cmp.Or(j.Schedule, strings.Join(j.Schedules, "; "))), TimeZone: cut(cmp.Or(j.TimeZone, "UTC")),
		ConcurrencyPolicy: cut(string(j.ConcurrencyPolicy)), Suspended: j.Suspended, StartingDeadlineSeconds: j.StartingDeadlineSeconds,
		SuccessfulLimit: j.SuccessfulJobs, FailedLimit: j.FailedJobs, Active: len(j.Status.Active), Created: j.Created,
		Next: timeOf(j.Status.NextScheduleTime), LastScheduled: timeOf(j.Status.LastScheduleTime),
		LastSuccessful: timeOf(j.Status.LastSuccessfulTime), uid: j.UID}
}

// longest is the length of a text in a label: an older definition of ScheduledJobs may have accepted any.
const longest = 256

func cut(text string) string { return strings.ToValidUTF8(text[:min(len(text), longest)], "") }

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// younger reports whether a was created after b. Objects of the same second are ordered by their UIDs, the same way in all triggers.
func younger(a, b *Schedule) bool {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.uid, b.uid)) > 0
}

// youth is a heap of Schedules, the youngest first: a heap.Interface.
type youth []*Schedule

func (y youth) Len() int           { return len(y) }
func (y youth) Less(i, j int) bool { return younger(y[i], y[j]) }

func (y youth) Swap(i, j int) {
	y[i], y[j] = y[j], y[i]
	y[i].place, y[j].place = i, j
}

// Push implements heap.Interface.
func (y *youth) Push(s any) {
	s.(*Schedule).place = len(*y)
	*y = append(*y, s.(*Schedule))
}

// Pop implements heap.Interface.
func (y *youth) Pop() any {
	last := len(*y) - 1
	s := (*y)[last]
	(*y)[last] = nil
	*y = (*y)[:last]
	return s
}
