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
	"github.com/jobstream/jobstream/functions/inventory"
)

// State is the memory of one ScheduledJob. Losing it is safe: an empty State takes inventory before anything is decided.
//
// Observe and Plan own the State that they are given and change its maps in place.
type State struct {
	inventory.Inventory
	// Gone reports whether the ScheduledJob no longer exists. That is final, since keys are UIDs.
	Gone bool
	// ListVersion is the version of the newest list of Jobs, or deletion of a Job, that was folded. An observation at or below it
	// of a Job that is not in the State is out of date.
	ListVersion uint64
	// Object is the newest observation of the ScheduledJob.
	Object events.ScheduledJob
	// Runs are its Jobs.
	Runs map[types.UID]Row
	// Until is the time up to which all nominal times have been covered: each is due, or has a verdict.
	Until time.Time
	// Due are the nominal times whose Jobs are to be created, in order.
	Due []Due
	// Pending are the verdicts that are not in the status yet, in order.
	Pending []v1alpha1.TickVerdict
	// Acked are the IDs of the verdicts in the status that the bus has confirmed.
	Acked map[string]bool
	// Noticed is the latest nominal time for which the trigger has sent a due notice, or may have sent one that could not be read.
	// If it is in the future, the trigger's clock is, or may be, ahead of this worker's.
	Noticed time.Time
	// Applied is the generation of the spec whose changes have been applied; Text and Paused are its timetable and suspension,
	// for comparison with the next.
	Applied int64
	Text    string
	Paused  bool
	// Waits are the effects that the API server refuses now, or refused earlier.
	Waits backoff.Waits
}

// valid returns an error that names the law that a state breaks, nil if it breaks none: nominal times are due in order, each
// once; none is due or has a verdict before the inventory; the key of a Job is its own UID.
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
	// Gone reports whether the Job no longer exists.
	Gone bool
	// New reports whether a user has started the Job and no observed status has it.
	New bool
	// Again is when its creation was last decided again, although it might have been requested before; zero if it never was. Such
	// a request may still be under way: it would create the Job once more if it were deleted by then.
	Again time.Time
	// Missed reports whether all that is known of its end is that a request has not found it. Its end is counted when its deletion has
	// been observed, which shows how it ended, or when a snapshot without it proves that no such observation will come.
	Missed bool
}

// Due is a nominal time whose Job is to be created.
type Due struct {
	_       struct{} `cbor:",toarray"`
	Nominal time.Time
	// Intended reports whether the decision to create its Job is committed: from then on the Job may exist.
	Intended bool
	// Again is when its creation was last decided again; zero if it was decided once.
	Again time.Time
	// Withdrawn is why an intended Job that has not been observed is no longer wanted: Deadline, Superseded, Suspended or FailedRuns. Whether
	// it has been created has to be found out, by the search with the ID Search.
	Withdrawn, Search string
	// Since is when it was withdrawn.
	Since time.Time
	// Absent reports whether the search found that the Job does not exist.
	Absent bool
	// Refused and Message are why the API server refused it most recently, at RefusedAt.
	Refused, Message string
	RefusedAt        time.Time
}

// last returns the last nominal time that a verdict covers.
func last(v v1alpha1.TickVerdict) time.Time {
	if v.Until != nil {
		return v.Until.UTC()
	}
	return v.Time.UTC()
}

// public returns a verdict in the form in which it is announced.
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

// active reports whether the Job exists and has not finished. A Job that is being deleted still has Pods.
func (r Row) active() bool { return !r.Gone && r.Run.Result == "" }

// rows returns the Jobs in the order of their nominal times, so that equal states have equal plans.
func (s State) rows() []Row {
	return slices.SortedFunc(maps.Values(s.Runs), func(a, b Row) int {
		return cmp.Or(a.Run.Nominal.Compare(b.Run.Nominal), a.Run.Created.Compare(b.Run.Created), cmp.Compare(a.Run.UID, b.Run.UID))
	})
}

// runAt returns the Job of a nominal time.
func (s State) runAt(nominal time.Time) (Row, bool) {
	for _, r := range s.Runs {
		if r.Run.Nominal.Equal(nominal) {
			return r, true
		}
	}
	return Row{}, false
}

// decidedUntil returns status.decidedUntil; zero if it is not set.
func (s State) decidedUntil() time.Time {
	if t := s.Object.Status.DecidedUntil; t != nil {
		return t.UTC()
	}
	return time.Time{}
}

// begun reports whether the first status has been written. No Job is created before.
func (s State) begun() bool { return s.Object.Status.DecidedUntil != nil }

// counts reports whether a Job is in status.active: its end has not been counted.
func (s State) counts(uid types.UID) bool {
	for _, ref := range s.Object.Status.Active {
		if ref.UID == uid {
			return true
		}
	}
	return false
}

// forget drops what the status has: verdicts that it has passed, Jobs that are gone and counted. If another worker has decided
// part of a range meanwhile, the rest of it stays; to cut it takes a timetable. A Job stays until the list version exceeds its
// last observation, because that observation, delivered again, would look like a new Job.
func (s *State) forget(t Times) {
	decided := s.decidedUntil()
	s.Pending = slices.DeleteFunc(s.Pending, func(v v1alpha1.TickVerdict) bool { return !last(v).After(decided) })
	for i, v := range s.Pending {
		if v.Until == nil || v.Time.After(decided) || t == nil {
			continue
		}
		if first, ok := of(v, t).Next(decided); ok && !first.After(last(v)) {
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
