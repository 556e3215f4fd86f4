package job

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
)

// overdueAfter is how long after the end of its time to live a Job counts as overdue: until then, the timer that deletes it may still
// be on its way.
const overdueAfter = time.Minute

// Concerns reports whether a Pod has to be in a snapshot of the Job, which is nil where there is none. The Pod runs, or is not
// counted; or it is an orphan that the Job may adopt; or it has failed, and there may be more of those than the Job allows.
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

// Idle reports whether this function has nothing to do for the Job, which has these Pods, though every fact about them, and every
// timer, may have been lost. A trigger that lists the cluster does not wake such a Job. One that has finished after since is not
// idle: the reconciler that finished it may have died before it announced that.
func Idle(j *events.Job, pods []events.Pod, since, now time.Time) bool {
	return j.Finished() && !j.FinishedAt().After(since) && !outlived(j, now) && !overLimit(j, pods) &&
		!slices.ContainsFunc(pods, func(p events.Pod) bool { return p.Held })
}

// overLimit reports whether more failed Pods are left than the Job allows.
func overLimit(j *events.Job, pods []events.Pod) bool {
	limit, failed := j.Options.FailedPodsLimit, 0
	for _, p := range pods {
		if p.Phase == events.Failed && !p.Deleting {
			failed++
		}
	}
	return limit != nil && failed > *limit
}

// outlived reports whether a finished Job should have been deleted. If that is left to us, the timer for it has been lost.
func outlived(j *events.Job, now time.Time) bool {
	end := j.Expires()
	return !end.IsZero() && !j.Deleting && now.After(end.Add(overdueAfter))
}
