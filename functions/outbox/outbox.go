// Package outbox is what the subscribers of one Job have to be told, and what they have been told: each of its starts, the ends of its
// Pods if the operator wants them, and its end. It is a part of the State of the function job.
//
// A notice is true of the cluster, because only an observation creates one. It stays due until the bus has confirmed it, even if the Job
// is gone by then:
//
//	observation --Note--> noticed --Judge--> due --Confirmed--> done
//	                    '--- before this State began, and too long ago: done
//
//	ended Pod --Ended--> due --Confirmed--> forgotten
//	                    '--- too many are due: dropped, and reported as such
package outbox

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Outbox is empty at first: nothing is due. See the package.
type Outbox struct {
	_ struct{} `cbor:",toarray"`
	// Began is the version of the Job that this state began with. What only later observations show is news.
	Began uint64
	// Notices are in the order in which they are announced.
	Notices []Notice
	// Pods are the ended Pods that are due, by serial. Dropped counts those that were too many, Reported how many of them the
	// operator was told of.
	Pods              []PodNotice
	Dropped, Reported int
}

// Notice is one start of the Job, or its end.
type Notice struct {
	_ struct{} `cbor:",toarray"`
	// ID is that of the event.
	ID string
	// Version is that of the oldest observation that shows it. The event is built from that observation.
	Version uint64
	// Due reports whether it is announced until the bus has confirmed it.
	Due bool
	// Start or Finish is the event to announce. Both are nil once it is confirmed, or is not to be announced.
	Start  *events.JobStarted
	Finish *events.JobFinished
}

// MaxNotices bounds the State of a Job that is suspended and resumed without end. A dropped notice was announced. Only an
// observation that is delivered again much later can bring it back, and then it is announced a second time.
const MaxNotices = 100

// Note remembers the start and the end that an observation of the Job shows. Observations may come in any order.
func (o *Outbox) Note(j events.Job) {
	if j.Foreign {
		return
	}
	if e, ok := j.Started(); ok {
		o.add(Notice{ID: events.PublicID(e), Version: j.Version, Start: &e})
	}
	if e, ok := j.Ended(); ok {
		o.add(Notice{ID: events.PublicID(e), Version: j.Version, Finish: &e})
	}
}

func (o *Outbox) add(n Notice) {
	if i := o.find(n.ID); i < 0 {
		o.Notices = append(o.Notices, n)
	} else if old := &o.Notices[i]; !old.done() && n.Version < old.Version {
		n.Due = old.Due
		*old = n
	}
	slices.SortStableFunc(o.Notices, inOrder)
	if len(o.Notices) > MaxNotices && o.Notices[0].done() {
		o.Notices = slices.Delete(o.Notices, 0, 1)
	}
}

func (o *Outbox) find(id string) int {
	return slices.IndexFunc(o.Notices, func(n Notice) bool { return n.ID == id })
}

// inOrder sorts finished notices first, then starts by time, and the end last.
func inOrder(a, b Notice) int {
	if c := cmp.Compare(a.rank(), b.rank()); c != 0 || a.Start == nil {
		return c
	}
	return a.Start.Start.Compare(b.Start.Start)
}

func (n Notice) rank() int {
	switch {
	case n.done():
		return 0
	case n.Start != nil:
		return 1
	}
	return 2
}

func (n Notice) done() bool { return n.Start == nil && n.Finish == nil }

func (n Notice) event() events.Public {
	if n.Start != nil {
		return *n.Start
	}
	return *n.Finish
}

// settle notes that nothing is left to announce.
func (n *Notice) settle() { *n = Notice{ID: n.ID} }

// Confirmed notes that the bus holds the event with that ID, and reports whether that is news. After a loss of the state, a
// repeated confirmation counts as news again.
func (o *Outbox) Confirmed(id string) (news bool) {
	if news, of := o.confirmedPod(id); of {
		return news
	}
	i := o.find(id)
	if i < 0 {
		o.add(Notice{ID: id})
		return true
	}
	news = !o.Notices[i].done()
	o.Notices[i].settle()
	slices.SortStableFunc(o.Notices, inOrder)
	return news
}

// Judge decides once about each notice. What happened before this state began was most likely announced by the lost state. It is
// announced again as long as the stream of events recognizes the duplicate. Anything else is news, however old: no worker can
// have announced it.
func (o *Outbox) Judge(known bool, now time.Time, window time.Duration) {
	for i := range o.Notices {
		n := &o.Notices[i]
		if n.Due || n.done() {
			continue
		}
		before := !known || n.Version <= o.Began
		if n.Due = true; before && events.PublicTime(n.event()).Before(now.Add(-window)) {
			n.settle()
		}
	}
	slices.SortStableFunc(o.Notices, inOrder)
}

// next returns the start or the end that is due first; nil if none is.
func (o *Outbox) next() *Notice {
	if i := slices.IndexFunc(o.Notices, func(n Notice) bool { return !n.done() }); i >= 0 {
		return &o.Notices[i]
	}
	return nil
}

// Empty reports whether nothing is left to announce.
func (o *Outbox) Empty() bool {
	return o.next() == nil && len(o.Pods) == 0 && o.Dropped == o.Reported
}

// Announce returns what is announced next. A subscriber receives the start before the Pods, and the end after them.
func (o *Outbox) Announce(j events.Job) []effect.Effect {
	out := o.dropped()
	if n := o.next(); n != nil && (n.Start != nil || len(o.Pods) == 0) {
		return append(out, effect.Announce{Event: n.event()})
	}
	for _, n := range o.Pods {
		out = append(out, effect.Announce{Event: events.PodFinish(j, n.Pod, n.Result)})
	}
	return out
}
