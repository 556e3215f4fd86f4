package job

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// takeInventory turns an empty State into a knowing one. A snapshot that somebody else asked for, perhaps before our memory
// was lost, proves nothing and is ignored.
func takeInventory(s State, list events.JobListed) State {
	if list.Job != nil {
		s.Outbox.note(*list.Job)
	}
	if s.Asked == "" || list.ID != s.Asked {
		j := list.Job // only a finished Job may need nothing
		s.NeedsSync = s.NeedsSync || j == nil || !j.Finished() || s.expires(*j) || tooManyFailed(list) ||
			slices.ContainsFunc(list.Pods, func(p events.Pod) bool { return p.Held || !p.Terminal() })
		return s
	}
	s.Known, s.ListVersions = true, ListVersions{{Version: list.Version}}
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
		// A worker of the lost memory may still be making Pods whose serials nobody has written down. They are welcome
		// as long as they do not share one with ours.
		s.Next += s.lossGap()
	}
	return s
}

// compare holds what we remember against a snapshot, or a part of one: what we saw at or before it, and it does not list though it
// would have to, is gone.
func compare(s State, list events.JobPartListed) State {
	if list.ID == s.Unread {
		s.Unread = ""
	}
	if list.Job != nil {
		s = seeJob(s, *list.Job)
		if list.Version >= s.ListVersions.newest() {
			if s.AdoptsNone && !list.AdoptsNone && !list.Job.Finished() && !list.Job.Deleting {
				s.Crowded = true // no list so far has shown the orphans, and this one perhaps not all
			}
			s.AdoptsNone = list.AdoptsNone
		}
	} else if s.Job.Version <= list.JobsVersion {
		s.Gone = true
	}
	listed := make(map[types.UID]bool, len(list.Pods))
	for _, p := range list.Pods {
		listed[p.UID] = true
		if h := s.ListVersions.of(p.UID); p.Version > h {
			s = seePod(s, p)
		} else if list.Version >= h {
			s.keepSettled(p)
		}
	}
	gone := func(p events.Pod) bool {
		return p.UID != "" && p.Version <= list.Version && covers(list.From, list.To, p.UID) && !listed[p.UID]
	}
	for serial, r := range s.Pods {
		if gone(r.Pod) {
			r.Gone = true
			s.Pods[serial] = r
		}
	}
	if list.Job != nil && list.Job.Options.FailedPodsLimit != nil { // else it lists none that are kept
		maps.DeleteFunc(s.Kept, func(_ types.UID, p events.Pod) bool { return gone(p) })
	}
	for uid, u := range s.Unplaced {
		if gone(u.Pod) {
			s.placed(uid, events.NoSerial)
		}
	}
	s.ListVersions = s.ListVersions.fold(list.From, list.To, list.Version)
	return s
}
