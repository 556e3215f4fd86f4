package job

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
)

// overdueAfter is how long after the end of its time to live a Job counts as overdue. Before that, the timer that deletes it may
// still be on its way.
const overdueAfter = time.Minute

// Concerns reports whether a snapshot of the Job has to contain a Pod; j is nil if there is no Job. It does if the Pod runs, or
// is not counted; or is an orphan that the Job may adopt; or has failed, and there may be more of those than the Job allows.
func Concerns(j *events.Job, p events.Pod) bool {
	switch {
	case p.Held, !p.Terminal():
		return true
	case j == nil:
		return false
	case p.Orphan:
		return !j.Finished()
	}
	return p.Phase == events.Failed && j.Options.FailedPodsLimit != nil
}

// Idle reports whether this function has nothing to do for the Job with these Pods, even if every fact about them and every timer
// was lost. A trigger that lists the cluster does not wake such a Job. A Job that finished after since is not idle: the
// reconciler that finished it may have died before it announced that.
func Idle(j *events.Job, pods []events.Pod, since, now time.Time) bool {
	return j.Finished() && !j.FinishedAt().After(since) && !outlived(j, now) && !overLimit(*j, pods) &&
		!slices.ContainsFunc(pods, func(p events.Pod) bool { return p.Held })
}

// youngPod is the age up to which a Pod that waits without a reason is not worth a fact.
const youngPod = 5 * time.Second

// Redundant reports whether an observation of a Pod by a watch shows nothing but what this function did itself: the Pod was created for the
// Job, and neither the kubelet nor the scheduler has a word about it yet; or it has succeeded and its finalizer was removed. The reconciler that
// did so knows it from the API server's answer. If that answer was lost, the reconciler or its successor asks again: each effect
// may run twice. So a trigger need not publish such an observation, which is two or three of the five that there are of a usual Pod.
//
// A failed Pod may keep its finalizer for long, because it carries the number of failures of its index, so a user may be the one who
// removes that, and the Job may then have a failed Pod too many.
//
// age is how old the Pod is by the clock of the trigger, which may be wrong. A Pod that waits for longer is worth a fact: it may have had a
// reason before.
func Redundant(p events.Pod, age time.Duration) bool {
	made := p.Serial != events.NoSerial && !p.Orphan && p.Labels == nil && !p.Deleting
	created := p.Held && p.Phase == events.Pending && p.Waiting == "" && p.Restarts == 0 && age < youngPod
	return made && (created || p.Phase == events.Succeeded && !p.Held)
}

// outlived reports whether a finished Job should have been deleted by now. If this function has to delete it, the timer was lost.
func outlived(j *events.Job, now time.Time) bool {
	end := j.Expires()
	return !end.IsZero() && !j.Deleting && now.After(end.Add(overdueAfter))
}
