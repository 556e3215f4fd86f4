package job

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/inventory"
)

// takeInventory fills an empty State from a snapshot. A snapshot that another worker requested, or this function before it lost
// its state, proves nothing and is ignored.
func takeInventory(s State, list events.JobListed) State {
	if list.Job != nil {
		s.Outbox.Note(*list.Job)
	}
	if !s.Requested(list.ID) {
		j := list.Job // only a finished Job may need nothing
		s.NeedsSync = s.NeedsSync || j == nil || !j.Finished() || s.expires(*j) || overLimit(*j, list.Pods) ||
			slices.ContainsFunc(list.Pods, func(p events.Pod) bool { return p.Held || !p.Terminal() })
		return s
	}
	s.Known, s.ListVersions = true, inventory.ListVersions{{Version: list.Version}}
	s.Pods, s.Unplaced = map[int]Row{}, map[types.UID]Unplaced{}
	if list.Job == nil {
		s.Gone = true
	} else {
		s.Job, s.Next, s.Outbox.Began = *list.Job, list.Job.NextSerial, list.Job.Version
		s.AdoptsNone = list.AdoptsNone
	}
	for _, p := range list.Pods {
		if p.Held || !s.piecemeal() {
			s = seePod(s, p)
		}
	}
	if j := list.Job; len(list.Pods) > 0 || j != nil && (j.Status.StartTime != nil || len(j.Status.Conditions) > 0) {
		// A worker with the lost state may still be creating Pods whose serials are not recorded anywhere. They are welcome as
		// long as they share none with new Pods.
		s.Next += s.lossGap()
	}
	return s
}

// compare compares the state with a snapshot, or a part of one. A Pod that was last observed at or before its version, and that
// it ought to list and does not, is gone.
func compare(s State, list events.JobPartListed) State {
	s.Compared(list.ID)
	if list.Job != nil {
		s = seeJob(s, *list.Job)
		if list.Version >= s.ListVersions.Newest() {
			if s.AdoptsNone && !list.AdoptsNone && !list.Job.Finished() && !list.Job.Deleting {
				s.Crowded = true // no list so far contains the orphans, and this one may not contain all of them
			}
			s.AdoptsNone = list.AdoptsNone
		}
	} else if s.Job.Version <= list.JobsVersion {
		s.Gone = true
	}
	listed := make(map[types.UID]bool, len(list.Pods))
	for _, p := range list.Pods {
		listed[p.UID] = true
		if h := s.ListVersions.Of(p.UID); p.Version > h {
			s = seePod(s, p)
		} else if list.Version >= h {
			s.keepSettled(p)
		}
	}
	gone := func(p events.Pod) bool {
		return p.UID != "" && p.Version <= list.Version && inventory.Covers(list.From, list.To, p.UID) && !listed[p.UID]
	}
	for serial, r := range s.Pods {
		if gone(r.Pod) {
			s.change(serial, func(r *Row) { r.Gone = true })
		}
	}
	if list.Job != nil && list.Job.Options.FailedPodsLimit != nil { // without a limit, the list leaves them out
		maps.DeleteFunc(s.Kept, func(_ types.UID, p events.Pod) bool { return gone(p) })
	}
	for uid, u := range s.Unplaced {
		if gone(u.Pod) {
			s.placed(uid, events.NoSerial)
		}
	}
	s.ListVersions = s.ListVersions.Fold(list.From, list.To, list.Version)
	return s
}
