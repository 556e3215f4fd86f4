package job

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// prune deletes failed Pods beyond the Job's limit, the oldest first (proposal job.md, failedPodsLimit). They have been counted:
// by the time that they have no finalizer, no status lists them any more.
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

// tooManyFailed reports whether a snapshot lists more failed Pods than its Job allows.
func tooManyFailed(list events.JobListed) bool {
	failed := 0
	for _, p := range list.Pods {
		if p.Phase == events.Failed && !p.Deleting && list.Job != nil && mine(*list.Job, p) {
			failed++
		}
	}
	return list.Job != nil && list.Job.Options.FailedPodsLimit != nil && failed > *list.Job.Options.FailedPodsLimit
}

// expires reports whether this function has to delete the Job some time after it has finished.
func (s State) expires(j events.Job) bool {
	return s.limits.DeleteExpired && j.TTLSecondsAfterFinished != nil
}

// expiry returns when this function has to delete a finished Job; zero for never.
func expiry(s State) time.Time {
	if !s.expires(s.Job) {
		return time.Time{}
	}
	return s.Job.Expires()
}

// expire deletes a finished Job whose time to live is over.
func expire(s State, now time.Time, at *effect.Wake) []effect.Effect {
	end := expiry(s)
	switch {
	case end.IsZero():
		return nil
	case now.Before(end):
		at.By(end)
		return nil
	}
	return []effect.Effect{effect.DeleteJob{Job: s.Job.Name, Version: s.Job.Version}}
}
