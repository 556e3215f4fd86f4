package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/policy"
)

// The end of a Pod is announced, if the operator wants it, once the Job's status accounts for it and its finalizer is removed.
// Until then its row records what it counts as; afterwards its serial is settled, and nothing can restore it:
//
//	status lists its UID, or its index --account for--> Result --no longer held, settled--> due --confirmed--> forgotten
//	                                                                                         '--too many are due: dropped
//
// So announcements add no Pods to the state of a Job except for those that are due.

// PodNotice is the end of a Pod that is announced until the bus has confirmed it.
type PodNotice struct {
	_      struct{} `cbor:",toarray"`
	Pod    events.Pod
	Result events.PodResult
}

const (
	// podNoticesKept is the largest number of ends of Pods that wait to be announced, more than the API server removes finalizers
	// in the time that one decision is good for. Each decision announces all of them, so more only accumulate while the bus
	// accepts none, and then the state must not grow without bound.
	podNoticesKept = 2000
	// droppedMark is the prefix of IDs that report dropped announcements, and of no others.
	droppedMark = "dropped/"
)

// accountFor notes what the ends of Pods count as, as soon as the observed status shows it. A Pod that was listed keeps its
// result when the list moves on. If only the Pod itself shows what it counts as, it must still be held: otherwise it may have
// been announced long ago, before a loss of the state.
func (s *State) accountFor() {
	if !s.limits.AnnouncePods {
		return
	}
	listed := listed(s.Job.Status)
	var recorded interface{ Has(int) bool }
	if s.Job.Indexed {
		recorded = indexes(s.Job, s.Job.Status.CompletedIndexes)
	}
	for serial, r := range s.Pods {
		if p := r.Pod; r.Result == "" && (p.Terminal() || p.Deleting) {
			r.Result = listed[p.UID]
			switch {
			case r.Result != "" || !r.held() || !mine(s.Job, p) || !counts(s.Job, p):
			case p.Phase == events.Succeeded && recorded != nil && recorded.Has(p.Index):
				r.Result = events.PodSucceeded
			case p.Phase == events.Failed && !policy.Failure(s.Job.PodFailurePolicy, s.Job.Namespace, p).Counts:
				r.Result = events.PodIgnored
			}
			if r.Result != "" {
				s.Pods[serial] = r
			}
		}
	}
}

// withEnd returns an observation of a Pod with the details of its end; old is the observation before. If ends of Pods are not
// announced, it omits them. A snapshot leaves them out, so they are taken from old.
func (s *State) withEnd(p, old events.Pod) events.Pod {
	switch {
	case !s.limits.AnnouncePods:
		p.End = nil
	case p.End == nil && old.UID == p.UID:
		p.End = old.End
	}
	return p
}

// ended adds the end of a Pod that is being settled.
func (o *Outbox) ended(r Row) {
	if r.Result == "" {
		return
	}
	if len(o.Pods) >= podNoticesKept {
		o.Dropped++
		return
	}
	p := r.Pod // only what the event contains
	n := PodNotice{Result: r.Result, Pod: events.Pod{Name: p.Name, UID: p.UID, Index: p.Index, Serial: p.Serial, Finished: p.Finished, End: p.End}}
	i, _ := slices.BinarySearchFunc(o.Pods, n, bySerial)
	o.Pods = slices.Insert(o.Pods, i, n)
}

func bySerial(a, b PodNotice) int {
	return cmp.Or(cmp.Compare(a.Pod.Serial, b.Pod.Serial), cmp.Compare(a.Pod.UID, b.Pod.UID))
}

// confirmedPod notes the confirmation of an ID that is not a start or an end of the Job; of is false if it is one.
func (o *Outbox) confirmedPod(id string) (news, of bool) {
	if uid, of := events.FinishedPod(id); of {
		due := len(o.Pods)
		o.Pods = slices.DeleteFunc(o.Pods, func(n PodNotice) bool { return n.Pod.UID == uid })
		return len(o.Pods) < due, true
	}
	text, ok := strings.CutPrefix(id, droppedMark)
	if n := 0; ok {
		if _, err := fmt.Sscan(text, &n); err == nil {
			o.Reported = max(o.Reported, min(n, o.Dropped))
		}
	}
	return false, ok
}

// dropped reports how many announcements have been dropped since the last report.
func (o *Outbox) dropped() []effect.Effect {
	if o.Dropped == o.Reported {
		return nil
	}
	return []effect.Effect{effect.ReportDropped{ID: droppedMark + fmt.Sprint(o.Dropped), Count: o.Dropped - o.Reported}}
}
