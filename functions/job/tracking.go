package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
)

// pace returns how far the status may fall behind where there is only progress to report: the time between two writes, and the number
// of newly ended Pods that are written at once. That is a second (upstream's batch period) and a quarter of the parallelism; where 500
// Pods or more of an Indexed Job run at once, up to three seconds and half of them, because each write names all its indexes. As one
// write adds Limits.MaxUncounted Pods at most, so many do not wait for those three seconds.
func (s State) pace() (interval time.Duration, many int) {
	parallelism := int(s.Job.Parallelism)
	if steps := parallelism / 500; s.Job.Indexed && steps > 0 {
		return time.Second + time.Duration(min(steps, 2))*time.Second, min(parallelism/2, s.limits.MaxUncounted)
	}
	return time.Second, max(1, (parallelism+3)/4)
}

// began returns when a Job without a start time began: with the creation of its first Pod, which the write that says so may follow late
// (ADR 43). The Pods of a Job that was suspended may be of before that. Pods that a list has found were created by another worker; upstream
// takes the time at which it finds them.
func (s State) began(now time.Time) time.Time {
	if s.Job.HasCondition(batchv1.JobSuspended) {
		return now
	}
	for _, r := range s.Pods {
		if at := r.Pod.Created; s.new(r.Pod) && r.Pod.UID != "" && at.Before(now) && !at.Before(s.Job.Created) {
			now = at
		}
	}
	return now
}

// account computes the wanted status (KEP-2307, steps 2 and 4), and reports whether it differs from the observed one.
func account(s State, c count, v outcome, now time.Time, at *effect.Wake) (batchv1.JobStatus, bool) {
	st := *s.Job.Status.DeepCopy()
	if st.StartTime == nil && len(s.Job.Unsupported) == 0 && !s.Job.Suspended {
		st.StartTime = &metav1.Time{Time: s.began(now).Truncate(time.Second)}
	}
	st.Active, st.Ready, st.Terminating = c.shown.active, &c.shown.ready, &c.shown.terminating
	flush(&st, s)
	list(&st, s, c)
	conclude(&st, s, c, v, now)
	waits := waits(s, v, now, at)
	showWaiting(&st, waits, c, now, at)
	differs := !equality.Semantic.DeepEqual(st, s.Job.Status) || !record(s.Job, c, st).Equal(s.Job.Backoff)
	if differs {
		showBackoff(&st, s, c, v, now)
		hideWaiting(&st, waits, now)
	}
	return st, differs
}

// flush counts the UIDs that are listed and no longer held (step 4): no worker can count them again.
func flush(st *batchv1.JobStatus, s State) {
	held := map[types.UID]bool{}
	for _, r := range s.Pods {
		if r.held() {
			held[r.Pod.UID] = true
		}
	}
	for uid, u := range s.Unplaced {
		if u.Pod.Held {
			held[uid] = true
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

// list adds Pods that have newly ended (step 2), as many as fit into one status: UIDs, or for the successes of an Indexed Job
// their indexes, which identify them just as well ("Simplified algorithm for Indexed Jobs"). The last failure of an index that is
// to be tried again waits for its successor, which takes over the number of failures.
func list(st *batchv1.JobStatus, s State, c count) {
	u := st.UncountedTerminatedPods
	room := max(0, s.limits.MaxUncounted-len(u.Succeeded)-len(u.Failed))
	succeeded := c.succeeded[:min(room, len(c.succeeded))]
	room -= len(succeeded)
	for _, p := range c.failed {
		if _, handsOn := c.indexes.carrier[p.UID]; !handsOn && room > 0 {
			u.Failed = append(u.Failed, p.UID)
			room--
		}
	}
	if !s.Job.Indexed {
		for _, p := range succeeded {
			u.Succeeded = append(u.Succeeded, p.UID)
		}
		return
	}
	indexes := make([]int, 0, len(succeeded))
	for _, p := range succeeded {
		indexes = append(indexes, p.Index)
	}
	completed := c.indexes.recorded.Union(intervals.Of(indexes...))
	st.CompletedIndexes, st.Succeeded, st.FailedIndexes = completed.String(), int32(completed.Len()), nil
	if s.Job.BackoffLimitPerIndex != nil {
		failed := c.indexes.failed.String()
		st.FailedIndexes = &failed
	}
}

// writeStatus builds the write of a wanted status and reports whether it is due. What users and finalizers wait for is written at
// once; mere progress waits until there is enough of it (KEP-2307: steps may be skipped where "a status update happened too
// recently and the number of uncounted Pods is a small percentage of parallelism").
func writeStatus(s State, want batchv1.JobStatus, c count, now time.Time, at *effect.Wake) (effect.WriteJobStatus, bool) {
	w := effect.WriteJobStatus{Job: s.Job.Name, Version: s.Job.Version, Status: want, NextSerial: s.Next,
		Backoff: record(s.Job, c, want), LastFailure: s.lastFailure(), FailedIndexExits: s.failedIndexExits(c), Reports: reports(s.Job, want), Handled: handled(s, c, want)}
	if s.Waits.Blocked(w, now) {
		return w, false
	}
	have := s.Job.Status
	urgent := want.StartTime != nil && have.StartTime == nil || turned(want.Conditions, have.Conditions) ||
		want.Succeeded < have.Succeeded // an elastic Job was scaled down
	interval, many := s.pace()
	next := s.Written.Add(interval)
	if s.Written.After(now) {
		next = now // the clock of the worker that wrote last was ahead, or this one's was set back
	}
	if !urgent && unreported(c) < many && now.Before(next) {
		at.By(next)
		return w, false
	}
	return w, true
}

// turned reports whether a condition was added or changed its status. A changed message alone can wait, and so can
// what a Job waits for.
func turned(want, have []batchv1.JobCondition) bool {
	others := func(all []batchv1.JobCondition) []batchv1.JobCondition {
		return slices.DeleteFunc(slices.Clone(all), func(c batchv1.JobCondition) bool {
			return c.Type == v1alpha1.BackingOffCondition || c.Type == v1alpha1.PodsWaitingCondition
		})
	}
	want, have = others(want), others(have)
	return len(want) != len(have) || slices.ContainsFunc(want, func(w batchv1.JobCondition) bool {
		return !slices.ContainsFunc(have, func(h batchv1.JobCondition) bool { return h.Type == w.Type && h.Status == w.Status })
	})
}

// unreported returns how many Pods have ended since the observed status. A failed Pod that waits for its successor is not among them.
func unreported(c count) int {
	n := len(c.succeeded)
	for _, p := range c.failed {
		if !c.indexes.carrier[p.UID] {
			n++
		}
	}
	return n
}

// written returns the Pods that the wanted status lists: the backoff record in it must belong to those and no others.
func written(pods []events.Pod, want batchv1.JobStatus, j events.Job) (out []events.Pod) {
	listed := listed(want)
	completed, _ := intervals.Parse(want.CompletedIndexes)
	for _, p := range pods {
		if listed[p.UID] != "" || j.Indexed && p.Phase == events.Succeeded && completed.Has(p.Index) {
			out = append(out, p)
		}
	}
	return out
}

// removeCounted removes the finalizers of Pods that the observed status lists (step 3), and of those that count for nothing.
func removeCounted(s State, c count, v outcome) (out []effect.Effect) {
	ignored := map[types.UID]bool{}
	for _, p := range c.ignored {
		_, handsOn := c.indexes.carrier[p.UID]
		recorded := s.Job.BackoffLimitPerIndex != nil || v.kind != "" || !p.Finished.After(s.Job.Backoff.Last)
		ignored[p.UID] = (p.Terminal() || v.failing() && p.Deleting) && !handsOn && recorded
	}
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		p := r.Pod
		over := p.Phase == events.Succeeded && s.Job.Indexed && (c.indexes.recorded.Has(p.Index) || c.indexes.lost.Has(p.Index))
		worthless := p.Terminal() && !counts(s.Job, p)
		listed := c.listed[p.UID] != "" && (p.Terminal() || p.Deleting) // another controller listed a running Pod: it counts when it ends
		switch {
		case !r.held() || !mine(s.Job, p):
		case ignored[p.UID] && !p.Terminal(): // it may have succeeded by now
			out = append(out, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})
		case listed || over || worthless || ignored[p.UID]:
			out = append(out, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
		}
	}
	return out
}
