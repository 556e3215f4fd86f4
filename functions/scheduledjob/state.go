package scheduledjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
)

// State is what we remember of one ScheduledJob. Losing it is safe: an empty State takes inventory before it decides.
//
// Observe and Plan own the State they are given and change its maps in place.
type State struct {
	// Name is the ScheduledJob's, from any observation of it: it makes the inventory cheap.
	Name string
	// Asked is the ID of the inventory that this memory waits for, or began with. It tells this memory from a lost one.
	Asked string
	// NeedsSync reports whether an event was observed that needs the inventory.
	NeedsSync bool
	// Known says that the inventory has been taken.
	Known bool
	// Unread is the ID of the inventory that is taken because something was told that we could not read, "" where nothing was.
	// What is remembered stays: the snapshot is compared with it.
	Unread string `cbor:",omitempty"`
	// Gone says that the ScheduledJob no longer exists. That is final, since keys are UIDs.
	Gone bool
	// ListVersion is the newest list of Jobs that we have folded, or deletion of a Job: a Job that we do not know, at or below it,
	// is history.
	ListVersion uint64
	// Object is the newest observation of the ScheduledJob.
	Object events.ScheduledJob
	// Runs are its Jobs.
	Runs map[types.UID]Row
	// Until is the nominal time up to which all have been covered: they are due, or have a verdict.
	Until time.Time
	// Due are the nominal times whose Jobs shall be made, in order.
	Due []Due
	// Pending are the verdicts that the status does not remember yet, in order.
	Pending []v1alpha1.TickVerdict
	// Acked are the IDs of the verdicts in the status that the bus has confirmed.
	Acked map[string]bool
	// Noticed is the latest nominal time that has been fired for and has not come yet: the trigger's clock is ahead of ours.
	Noticed time.Time
	// Applied is the generation of the spec whose changes have been applied; Text and Paused are what it was before the next.
	Applied int64
	Text    string
	Paused  bool
	// Waits are the effects that the API server refuses just now, or once did.
	Waits backoff.Waits
}

// valid returns which law a memory breaks, nil for none: nominal times are due in order, each once, and none is due or has a verdict before
// the inventory; a Job stands under its own UID.
func (s State) valid() error {
	if !s.Known && len(s.Due)+len(s.Pending) > 0 {
		return fmt.Errorf("%d times are due and %d have a verdict, and no inventory has been taken", len(s.Due), len(s.Pending))
	}
	for i := 1; i < len(s.Due); i++ {
		if !s.Due[i-1].Nominal.Before(s.Due[i].Nominal) {
			return fmt.Errorf("%v is due before %v", s.Due[i-1].Nominal, s.Due[i].Nominal)
		}
	}
	for uid, r := range s.Runs {
		if r.Run.UID != uid {
			return fmt.Errorf("the Job %s stands under the UID %s", r.Run.UID, uid)
		}
	}
	return nil
}

// Row is one Job of the ScheduledJob.
type Row struct {
	_   struct{} `cbor:",toarray"`
	Run events.Run
	// Gone says that the Job no longer exists.
	Gone bool
	// New says that a user has started the Job, and that no status has been seen that knows it.
	New bool
}

// Due is a nominal time whose Job shall be made.
type Due struct {
	_       struct{} `cbor:",toarray"`
	Nominal time.Time
	// Intended reports whether the commit that decides to make its Job is done: the Job may exist from then on.
	Intended bool
	// Withdrawn is why a Job that was intended, and has not been seen, is no longer wanted: Deadline, Superseded or Suspended.
	// Whether it has been made has to be found out, by a search under this ID.
	Withdrawn, Search string
	// Since is when it was withdrawn.
	Since time.Time
	// Absent says that it was found not to exist.
	Absent bool
	// Refused and Message are why the API server has refused it, the latest time, which was RefusedAt.
	Refused, Message string
	RefusedAt        time.Time
}

// last is the last nominal time that a verdict is about.
func last(v v1alpha1.TickVerdict) time.Time {
	if v.Until != nil {
		return v.Until.UTC()
	}
	return v.Time.UTC()
}

// public is a verdict as it is announced.
func public(j events.ScheduledJob, v v1alpha1.TickVerdict) events.TickDecided {
	t := events.TickDecided{
		ScheduledJob: events.Reference{Namespace: j.Namespace, Name: j.Name, UID: j.UID},
		Verdict:      events.Verdict(v.Verdict), Reason: v.Reason, Message: v.Message, Nominal: v.Time.UTC(), Count: v.Count,
	}
	if v.Until != nil {
		t.Until = v.Until.UTC()
	}
	if v.JobName != "" {
		t.Job = &events.Reference{Namespace: j.Namespace, Name: v.JobName, UID: v.JobUID}
	}
	return t
}

// active says that the Job exists and has not finished. One that is being deleted still has Pods.
func (r Row) active() bool { return !r.Gone && r.Run.Result == "" }

// rows lists the Jobs in the order of their nominal times, so that every plan is the same for the same state.
func (s State) rows() []Row {
	return slices.SortedFunc(maps.Values(s.Runs), func(a, b Row) int {
		return cmp.Or(a.Run.Nominal.Compare(b.Run.Nominal), a.Run.Created.Compare(b.Run.Created), cmp.Compare(a.Run.UID, b.Run.UID))
	})
}

// runAt finds the Job of a nominal time.
func (s State) runAt(nominal time.Time) (Row, bool) {
	for _, r := range s.Runs {
		if r.Run.Nominal.Equal(nominal) {
			return r, true
		}
	}
	return Row{}, false
}

// decidedUntil is what the cluster remembers; zero while it remembers nothing.
func (s State) decidedUntil() time.Time {
	if t := s.Object.Status.DecidedUntil; t != nil {
		return t.UTC()
	}
	return time.Time{}
}

// begun says that the cluster remembers that we have begun: no Job is made before.
func (s State) begun() bool { return s.Object.Status.DecidedUntil != nil }

// counts says that a Job stands in status.active: its end has not been counted.
func (s State) counts(uid types.UID) bool {
	for _, ref := range s.Object.Status.Active {
		if ref.UID == uid {
			return true
		}
	}
	return false
}

// forget drops what the cluster remembers: verdicts that it has passed, Jobs that are gone and counted. Of a range that it has
// passed in part, because somebody else has decided that part meanwhile, the rest stays; to cut it takes a timetable. A Job stays
// until the list version is over its last observation, which told once more would be that of a new one.
func (s *State) forget(t Times) {
	decided := s.decidedUntil()
	s.Pending = slices.DeleteFunc(s.Pending, func(v v1alpha1.TickVerdict) bool { return !last(v).After(decided) })
	for i, v := range s.Pending {
		if v.Until == nil || v.Time.After(decided) || t == nil {
			continue
		}
		if first, ok := t.Next(decided); ok && !first.After(last(v)) {
			s.Pending[i] = between(v, t, first, last(v))
		}
	}
	recent := map[string]bool{}
	for _, v := range s.Object.Status.Recent {
		recent[events.PublicID(public(s.Object, v))] = true
	}
	maps.DeleteFunc(s.Acked, func(id string, _ bool) bool { return !recent[id] })
	for uid, r := range s.Runs {
		if r.New && remembers(&s.Object.Status, r.Run) {
			r.New = false
			s.Runs[uid] = r
		}
	}
	maps.DeleteFunc(s.Runs, func(uid types.UID, r Row) bool {
		return r.Gone && !r.New && !s.counts(uid) && !r.Run.Nominal.After(decided) && r.Run.Version <= s.ListVersion
	})
}

// say gives a verdict on one nominal time.
func (s *State) say(v events.Verdict, reason, message string, nominal time.Time) {
	s.sayOf(v1alpha1.TickVerdict{Verdict: string(v), Reason: reason, Message: message, Time: metav1.NewTime(nominal), Count: 1})
}

// sayStarted gives the verdict on a nominal time whose Job exists.
func (s *State) sayStarted(r events.Run) {
	s.sayOf(v1alpha1.TickVerdict{Verdict: string(events.Started), Time: metav1.NewTime(r.Nominal), Count: 1, JobName: r.Name, JobUID: r.UID})
}

func (s *State) sayOf(v v1alpha1.TickVerdict) {
	s.Pending = append(s.Pending, v)
	slices.SortStableFunc(s.Pending, func(a, b v1alpha1.TickVerdict) int { return a.Time.Compare(b.Time.Time) })
}
