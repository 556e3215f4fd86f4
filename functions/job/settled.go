package job

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// A Job may limit how many of its failed Pods stay (proposal job.md, failedPodsLimit). They have been counted and are settled; Kept
// remembers those that exist, and ListVersions those that have gone:
//
//	row --counted, settled--> Kept --deleted, gone, or no longer the Job's--> folded into ListVersions

// settle forgets Pods that no longer matter: ended and without the finalizer, or gone. The observed status may still list their
// UIDs; a listed UID that is not held is one that may be counted.
func settle(s State) State {
	for _, serial := range s.serials() { // in order, so that, if too many ends of Pods are due, equal states drop the same ones
		if r := s.Pods[serial]; r.Gone || r.Pod.UID != "" && !r.Pod.Held && r.Pod.Terminal() && !r.Pod.Orphan {
			s.settleSerial(serial)
		}
	}
	return s
}

// settleSerial forgets a Pod for good. A failed one whose number is limited moves to Kept.
func (s *State) settleSerial(serial int) {
	r := s.Pods[serial]
	s.ended(r)
	if !r.Gone {
		s.keep(r.Pod)
	}
	delete(s.Pods, serial)
	s.Settled = s.Settled.With(serial)
}

// keep remembers a failed Pod that has been counted, as long as it exists. Observations from before it was deleted, or was
// the Job's for the last time, must not restore it.
func (s *State) keep(p events.Pod) {
	old, kept := s.Kept[p.UID]
	switch own := mine(s.Job, p); {
	case p.Version < old.Version:
	case p.Phase == events.Failed && (p.Deleting || !own && (kept || s.Settled.Has(p.Serial))):
		s.leaves(p)
	case p.Phase != events.Failed || p.Held || !own:
		delete(s.Kept, p.UID)
	default:
		if s.Kept == nil {
			s.Kept = map[types.UID]events.Pod{}
		}
		s.Kept[p.UID] = events.Pod{Name: p.Name, UID: p.UID, Version: p.Version, Finished: p.Finished}
	}
}

// leaves notes that a failed Pod is being deleted, is gone, or no longer belongs to the Job. A GET that found nothing has no
// version.
func (s *State) leaves(p events.Pod) {
	old, kept := s.Kept[p.UID]
	if p.Version > 0 && p.Version < old.Version {
		return
	}
	delete(s.Kept, p.UID)
	if kept || p.Phase == events.Failed {
		s.ListVersions = s.ListVersions.FoldGone(p.UID, max(p.Version, old.Version))
	}
}

// leftBefore notes what an observation proves that is older than the one remembered, as if the two had come in order: that a counted
// Pod did not belong to the Job, or that a Pod that has left the Job had ended and been counted before, under a serial that is its own.
func (s *State) leftBefore(p events.Pod) {
	_, tracked := s.Pods[p.Serial]
	_, own := s.serialOf(p)
	newer, unplaced := s.Unplaced[p.UID]
	switch settled := s.Settled.Has(p.Serial); {
	case p.Phase == events.Failed && !mine(s.Job, p) && settled:
		s.ListVersions = s.ListVersions.FoldGone(p.UID, p.Version)
	case p.Phase == events.Failed && mine(s.Job, p) && !p.Held && p.Serial == events.NoSerial && unplaced && newer.Pod.Version > p.Version && !mine(s.Job, newer.Pod):
		s.ListVersions = s.ListVersions.FoldGone(p.UID, newer.Pod.Version)
	case p.Phase == events.Failed && mine(s.Job, p) && !p.Held && own && !tracked && !settled && p.Serial >= 0 && p.Version > s.ListVersions.Listed(p.UID):
		s.Settled, s.Next = s.Settled.With(p.Serial), max(s.Next, p.Serial+1)
	}
}

// keepSettled remembers a failed Pod that a snapshot lists although observations of its version are out of date: it was counted
// before the Job limited how many may stay.
func (s *State) keepSettled(p events.Pod) {
	_, unplaced := s.Unplaced[p.UID]
	if _, known := s.rowOf(p.UID); !known && !unplaced && p.Terminal() {
		s.keep(p)
	}
}

// prune deletes failed Pods beyond the Job's limit, the oldest first. They have been counted: by the time that they have no
// finalizer, no status lists them any more.
func prune(s State) (out []effect.Effect) {
	limit := s.Job.Options.FailedPodsLimit
	if limit == nil {
		return nil
	}
	oldest := slices.SortedFunc(maps.Values(s.Kept), func(a, b events.Pod) int {
		return cmp.Or(a.Finished.Compare(b.Finished), cmp.Compare(a.Version, b.Version), cmp.Compare(a.UID, b.UID))
	})
	for _, p := range oldest[:max(0, len(oldest)-*limit)] {
		out = append(out, effect.DeletePod{Name: p.Name, UID: p.UID})
	}
	return out[:min(len(out), s.limits.MaxPodChanges)]
}

// overLimit reports whether more failed Pods exist than the Job allows.
func overLimit(j events.Job, pods []events.Pod) bool {
	limit, failed := j.Options.FailedPodsLimit, 0
	for _, p := range pods {
		if p.Phase == events.Failed && !p.Deleting && mine(j, p) {
			failed++
		}
	}
	return limit != nil && failed > *limit
}
