package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
)

const (
	// uncountedMax is the most UIDs that one status carries: about 20 kB (KEP-2307; Kubernetes 1.36, MaxUncountedPods).
	uncountedMax = 500

	// statusInterval is how long a status write that only reports progress rests after the one before (upstream's batch
	// period). The first after a pause goes at once, and so does one that reports much: see much.
	statusInterval = time.Second
)

// count is what the unsettled Pods and the observed status amount to (KEP-2307, step 1).
type count struct {
	// listed are the UIDs in the observed status that wait to be counted.
	listed map[types.UID]bool
	// succeeded and failed are the Pods that have ended, are held, and do not stand in the observed status yet.
	succeeded, failed []events.Pod
	// done and lost are how many Pods have succeeded and failed: counted, listed and newly ended.
	done, lost int
	// recorded is the observed status.completedIndexes, completed is that and the newly succeeded ones.
	recorded, completed intervals.Set
	// active Pods run, ready ones are among them; terminating ones are on their way out; intended ones are to come.
	active, ready, terminating, intended int32
	// unsure is how many Pods are withdrawn and may exist nevertheless.
	unsure int
	// seen are the UIDs of Pods that are added: an edited serial must not make two of one.
	seen map[types.UID]bool
	// held is how many Pods carry our finalizer, listed or not.
	held int
	// restarts is the sum over active Pods.
	restarts int32
}

// tally counts. Once the observed status says that the Job fails, every Pod that was told to end and has not succeeded
// counts as failed (upstream: "when the job is considered finished, every non-terminated pod is considered failed").
func tally(s State) count {
	st := s.Job.Status
	_, failing := s.Job.Condition(batchv1.JobFailureTarget)
	c := count{listed: map[types.UID]bool{}, seen: map[types.UID]bool{}, done: int(st.Succeeded), lost: int(st.Failed)}
	if u := st.UncountedTerminatedPods; u != nil {
		for _, uid := range u.Succeeded {
			c.listed[uid] = true
		}
		for _, uid := range u.Failed {
			c.listed[uid] = true
		}
		c.done += len(u.Succeeded)
		c.lost += len(u.Failed)
	}
	if s.Job.Indexed {
		c.recorded = recorded(s.Job)
		c.completed = c.recorded
	}
	for _, serial := range s.serials() {
		c.add(s.Job, s.Pods[serial], failing)
	}
	c.lost += len(c.failed)
	if s.Job.Indexed {
		c.done = c.completed.Len()
	} else {
		c.done += len(c.succeeded)
	}
	return c
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
	fresh := r.held() && !c.listed[p.UID] && counts(j, p)
	switch {
	case r.Gone:
	case r.intended() && r.Withdrawn:
		c.unsure++
	case r.intended():
		c.intended++
	case p.Phase == events.Succeeded:
		if fresh && j.Indexed {
			if c.completed.Has(p.Index) {
				return // its index is done: nothing to count, only to release
			}
			c.completed = c.completed.With(p.Index)
		}
		if fresh {
			c.succeeded = append(c.succeeded, p)
		}
	case p.Phase == events.Failed:
		if fresh {
			c.failed = append(c.failed, p)
		}
	case r.Doomed:
		c.terminating++
	case p.Deleting:
		c.terminating++
		if fresh && (failing || !j.ReplaceFailedOnly) {
			c.failed = append(c.failed, p)
		}
	default:
		c.active++
		c.restarts += p.Restarts
		if p.Ready {
			c.ready++
		}
	}
}

// account computes the status that we want (KEP-2307, steps 2 and 4), and says whether it differs from the observed one.
func account(s State, c count, v outcome, now time.Time) (batchv1.JobStatus, bool) {
	st := *s.Job.Status.DeepCopy()
	if st.StartTime == nil && len(s.Job.Unsupported) == 0 {
		st.StartTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	st.Active, st.Ready, st.Terminating = c.active, &c.ready, &c.terminating
	if !s.pressed() {
		st.Active += c.intended // as good as made: spares a write per Pod
	}
	flush(&st, s)
	list(&st, s.Job, c)
	conclude(&st, s, c, v, now)
	return st, !equality.Semantic.DeepEqual(st, s.Job.Status)
}

// flush counts the UIDs that are listed and no longer held (step 4): nobody can count them again.
func flush(st *batchv1.JobStatus, s State) {
	held := map[types.UID]bool{}
	for _, r := range s.Pods {
		if r.held() {
			held[r.Pod.UID] = true
		}
	}
	old := st.UncountedTerminatedPods
	st.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	if old == nil {
		return
	}
	keep := func(uids []types.UID, counter *int32) (left []types.UID) {
		for _, uid := range uids {
			if held[uid] {
				left = append(left, uid)
			} else {
				*counter++
			}
		}
		return left
	}
	st.UncountedTerminatedPods.Succeeded = keep(old.Succeeded, &st.Succeeded)
	st.UncountedTerminatedPods.Failed = keep(old.Failed, &st.Failed)
}

// list adds Pods that have newly ended (step 2), as many as one status carries: UIDs, or for the successes of an Indexed
// Job their indexes, which identify them just as well ("Simplified algorithm for Indexed Jobs").
func list(st *batchv1.JobStatus, j events.Job, c count) {
	u := st.UncountedTerminatedPods
	room := uncountedMax - len(u.Succeeded) - len(u.Failed)
	completed := c.recorded
	for _, p := range c.succeeded {
		if room == 0 {
			break
		}
		if room--; j.Indexed {
			completed = completed.With(p.Index)
		} else {
			u.Succeeded = append(u.Succeeded, p.UID)
		}
	}
	for _, p := range c.failed[:min(room, len(c.failed))] {
		u.Failed = append(u.Failed, p.UID)
	}
	if j.Indexed {
		st.CompletedIndexes, st.Succeeded = completed.String(), int32(completed.Len())
	}
}

// writeStatus decides whether a wanted status is written now. What users and finalizers wait for goes at once; mere
// progress waits until there is enough of it (KEP-2307: steps may be skipped where "a status update happened too recently
// and the number of uncounted Pods is a small percentage of parallelism").
func writeStatus(s State, want batchv1.JobStatus, c count, now time.Time, at *alarm) (effect.WriteJobStatus, bool) {
	w := effect.WriteJobStatus{Job: s.Job.Name, Version: s.Job.Version, Status: want, NextSerial: s.Next,
		Backoff: backoff.After(s.Job.Backoff, written(c.succeeded, want, s.Job), written(c.failed, want, s.Job)),
		Reports: reports(s.Job, want)}
	if s.blocked(w.Kind(), now) {
		return w, false
	}
	urgent := want.StartTime != nil && s.Job.Status.StartTime == nil || turned(want.Conditions, s.Job.Status.Conditions)
	next := s.Written.Add(statusInterval)
	if s.Written.After(now) {
		next = now // the clock of whoever wrote last was ahead, or ours was set back
	}
	if !urgent && !much(s.Job, c) && now.Before(next) {
		at.by(next)
		return w, false
	}
	return w, true
}

// turned says that a condition has come, or changed its status; a message alone can wait.
func turned(want, have []batchv1.JobCondition) bool {
	return len(want) != len(have) || slices.ContainsFunc(want, func(w batchv1.JobCondition) bool {
		return !slices.ContainsFunc(have, func(h batchv1.JobCondition) bool { return h.Type == w.Type && h.Status == w.Status })
	})
}

// much says that a quarter of the Job's parallelism has ended since the observed status.
func much(j events.Job, c count) bool {
	ended := int32(len(c.succeeded) + len(c.failed))
	return ended > 0 && 4*ended >= j.Parallelism
}

// written keeps the Pods that the wanted status lists: the backoff record in it must belong to those and no others.
func written(pods []events.Pod, want batchv1.JobStatus, j events.Job) (out []events.Pod) {
	listed := map[types.UID]bool{}
	for _, uid := range want.UncountedTerminatedPods.Succeeded {
		listed[uid] = true
	}
	for _, uid := range want.UncountedTerminatedPods.Failed {
		listed[uid] = true
	}
	completed, _ := intervals.Parse(want.CompletedIndexes)
	for _, p := range pods {
		if listed[p.UID] || j.Indexed && p.Phase == events.Succeeded && completed.Has(p.Index) {
			out = append(out, p)
		}
	}
	return out
}

// release lets go of Pods that the observed status lists (step 3), and of those that count for nothing.
func release(s State, c count) (out []effect.Effect) {
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		p := r.Pod
		done := p.Phase == events.Succeeded && s.Job.Indexed && c.recorded.Has(p.Index)
		worthless := p.Terminal() && !counts(s.Job, p)
		if r.held() && (c.listed[p.UID] || done || worthless) {
			out = append(out, effect.ReleasePod{Name: p.Name, UID: p.UID})
		}
	}
	return out
}
