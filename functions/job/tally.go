package job

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/policy"
)

// count is the sum of the unsettled Pods and the observed status (KEP-2307, step 1).
type count struct {
	// listed are the UIDs in the observed status that are still to be counted, and what they count as.
	listed map[types.UID]events.PodResult
	// succeeded and failed are the Pods that have ended, are held, and are not in the observed status yet.
	succeeded, failed []events.Pod
	// ignored are held Pods whose failure the podFailurePolicy ignores.
	ignored []events.Pod
	// doom is why a single failure makes the Job fail (podFailurePolicy, FailJob), "" if none does.
	doom string
	// done and lost are the numbers of succeeded and failed Pods: counted, listed and newly ended.
	done, lost int
	// indexes is the progress of the indexes of an Indexed Job.
	indexes indexStatus
	// active Pods run, and ready ones are among them; terminating ones are being deleted; intended ones do not exist yet.
	active, ready, terminating, intended int32
	// shown are those of them that the status shows: Pods with a serial. An observation of a Pod from before it had one may come late,
	// when the Pod has been counted and is gone.
	shown struct{ active, ready, terminating int32 }
	// unplaced is the number of Pods that wait for a serial.
	unplaced int
	// unsure is the number of Pods that are withdrawn and may exist nevertheless.
	unsure int
	// marked is the number of surplus Pods whose deletion has not been observed: they may run for a moment longer.
	marked int
	// seen are the UIDs that have been added: an edited serial must not count one Pod twice.
	seen map[types.UID]bool
	// held is the number of Pods with the tracking finalizer, listed or not.
	held int
	// restarts is the sum over Pods that have not ended.
	restarts int32
}

// tally counts. Once the observed status shows that the Job fails, every Pod that is being deleted and has not succeeded counts
// as failed (upstream: "when the job is considered finished, every non-terminated pod is considered failed").
func tally(s State) count {
	st := s.Job.Status
	_, failing := s.Job.Condition(batchv1.JobFailureTarget)
	c := count{listed: listed(st), seen: map[types.UID]bool{}, done: int(st.Succeeded), lost: int(st.Failed)}
	if u := st.UncountedTerminatedPods; u != nil {
		c.done += len(u.Succeeded)
		c.lost += len(u.Failed)
	}
	if s.Job.Indexed {
		c.indexes = readIndexStatus(s, c.listed)
	}
	for _, serial := range s.serials() {
		c.add(s.Job, s.Pods[serial], failing)
	}
	c.shown.active, c.shown.ready, c.shown.terminating = c.active, c.ready, c.terminating
	for _, u := range s.Unplaced {
		if !u.Stray {
			c.addUnplaced(s.Job, u.Pod)
		}
	}
	c.lost += len(c.failed)
	if s.Job.Indexed {
		c.done = c.indexes.completed.Len()
	} else {
		c.done += len(c.succeeded)
	}
	return c
}

// listed returns the UIDs in a status that are still to be counted, and what they count as.
func listed(st batchv1.JobStatus) map[types.UID]events.PodResult {
	out := map[types.UID]events.PodResult{}
	if u := st.UncountedTerminatedPods; u != nil {
		for _, uid := range u.Succeeded {
			out[uid] = events.PodSucceeded
		}
		for _, uid := range u.Failed {
			out[uid] = events.PodFailed
		}
	}
	return out
}

func (c *count) add(j events.Job, r Row, failing bool) {
	p := r.Pod
	if p.UID != "" && c.seen[p.UID] {
		return
	}
	c.seen[p.UID] = true
	if r.held() {
		c.held++
	}
	fresh := r.held() && c.listed[p.UID] == "" && counts(j, p)
	if !r.Gone && (p.Phase == events.Running || p.Phase == events.Pending) {
		c.restarts += p.Restarts
	}
	switch {
	case r.Gone:
	case r.intended() && r.Withdrawn:
		c.unsure++
	case r.intended():
		c.intended++
	case !matches(j, p), p.Orphan && (p.Terminal() || p.Deleting): // no longer the Job's, or not yet
	case p.Phase == events.Succeeded:
		if fresh && (!j.Indexed || c.indexes.winner[p.Index] == p.UID) { // else its index is over, and the Pod only loses its finalizer
			c.succeeded = append(c.succeeded, p)
		}
	case p.Phase == events.Failed:
		c.fail(j, p, fresh)
	case r.Surplus:
		if c.terminating++; !p.Deleting {
			c.marked++
		}
	default:
		if c.addLive(p); p.Deleting && (failing || !j.ReplaceFailedOnly) {
			c.fail(j, p, fresh)
		}
	}
}

// addUnplaced counts a Pod that has no serial yet as active or terminating. If it has ended, it is not counted before it has one.
func (c *count) addUnplaced(j events.Job, p events.Pod) {
	c.unplaced++
	if p.Held {
		c.held++
	}
	if mine(j, p) && !p.Terminal() {
		c.addLive(p)
	}
}

func (c *count) addLive(p events.Pod) {
	switch {
	case p.Deleting:
		c.terminating++
	case p.Ready:
		c.ready++
		fallthrough
	default:
		c.active++
	}
}

// fail counts a failure as the podFailurePolicy defines.
func (c *count) fail(j events.Job, p events.Pod, fresh bool) {
	h := policy.Failure(j.PodFailurePolicy, j.Namespace, p)
	if c.doom == "" {
		c.doom = h.Message
	}
	if !fresh {
		return
	}
	if !h.Counts {
		c.ignored = append(c.ignored, p)
	} else {
		c.failed = append(c.failed, p)
	}
}

// counts reports whether a Pod's end counts at all: in an Indexed Job only if its index lies within the completions.
func counts(j events.Job, p events.Pod) bool {
	return !j.Indexed || p.Index >= 0 && p.Index < completions(j)
}
