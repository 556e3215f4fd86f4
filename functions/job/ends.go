package job

import (
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/policy"
)

// A row records what the end of its Pod counts as until its serial is settled. Then nothing can restore it, and the outbox has it:
//
//	status lists its UID, or its index --account for--> Result --no longer held, settled--> outbox

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
// announced, only a Pod keeps them whose failure is the last one of its index. A snapshot leaves them out, so they are taken from old.
func (s *State) withEnd(p, old events.Pod) events.Pod {
	switch {
	case !s.limits.AnnouncePods && (s.Job.BackoffLimitPerIndex == nil || !p.Terminal() || !indexFails(s.Job, p)):
		p.End = nil
	case p.End == nil && old.UID == p.UID:
		p.End = old.End
	}
	return p
}

// ended gives the end of a Pod that is being settled to the outbox.
func (s *State) ended(r Row) {
	if r.Result != "" {
		s.Outbox.Ended(r.Pod, r.Result)
	}
}
