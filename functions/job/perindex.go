package job

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/functions/policy"
)

// With backoffLimitPerIndex (KEP-3850) each index fails on its own. The number of its failures is only recorded in an annotation
// of its newest Pod, so the last failed Pod stays until a successor carries the number on:
//
//	pod a, 0 failures --fails--> carrier --successor b, 1 failure, is seen--> listed, not held, counted
//	                                 '--the index has failed for good, or the Job is over--------^

// failures adds the indexes that have newly failed, and finds the carriers.
func (b *indexStatus) failures(s State, listed map[types.UID]events.PodResult) {
	b.failed, b.carrier, b.last, b.fatal = b.lost, map[types.UID]bool{}, map[int]events.Pod{}, map[int]events.Pod{}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if _, over := s.Job.Condition(kind); over {
			return // no Pod gets a successor, and Pods that are deleted now do not fail their indexes
		}
	}
	active := map[int]bool{}
	serials := s.serials()
	for _, serial := range serials {
		r := s.Pods[serial]
		p := r.Pod
		switch {
		case r.live() && !r.Surplus && !p.Deleting:
			active[p.Index] = true
		case r.held() && !r.spared() && mine(s.Job, p) && counts(s.Job, p) && indexFails(s.Job, p) && !b.completed.Has(p.Index) && !b.lost.Has(p.Index):
			if q, other := b.fatal[p.Index]; !other || later(p, q) {
				b.fatal[p.Index] = p
			}
		}
	}
	b.failed = b.lost.Union(intervals.Of(slices.Collect(maps.Keys(b.fatal))...))
	for _, serial := range serials {
		r := s.Pods[serial]
		p := r.Pod
		if !r.held() || r.spared() || !mine(s.Job, p) || !counts(s.Job, p) || !failing(s.Job, p) || listed[p.UID] != "" ||
			active[p.Index] || b.completed.Has(p.Index) || b.failed.Has(p.Index) {
			continue
		}
		if q, other := b.last[p.Index]; !other || later(p, q) {
			b.last[p.Index] = p
		}
	}
	for _, p := range b.last {
		b.carrier[p.UID] = true
	}
}

// later reports whether p failed after q, by the number of failures before each, else by the clock.
func later(p, q events.Pod) bool {
	return q.IndexFailures+q.IndexIgnoredFailures <= p.IndexFailures+p.IndexIgnoredFailures && !p.Finished.Before(q.Finished)
}

// failing reports whether the Pod has failed or counts as failed (upstream: isPodFailed).
func failing(j events.Job, p events.Pod) bool {
	return p.Phase == events.Failed || !j.ReplaceFailedOnly && p.Deleting && p.Phase != events.Succeeded
}

// indexFails reports whether the Pod's failure is the last one of its index (upstream: isIndexFailed).
func indexFails(j events.Job, p events.Pod) bool {
	if !failing(j, p) {
		return false
	}
	h := policy.Failure(j.PodFailurePolicy, j.Namespace, p)
	return h.Action == batchv1.PodFailurePolicyActionFailIndex || h.Counts && p.IndexFailures >= *j.BackoffLimitPerIndex
}

// handOn returns the intended Pod next with the number of failures that follows from last, the index's last failed Pod.
func handOn(j events.Job, last, next events.Pod) events.Pod {
	next.IndexFailures, next.IndexIgnoredFailures = last.IndexFailures, last.IndexIgnoredFailures
	if policy.Failure(j.PodFailurePolicy, j.Namespace, last).Counts {
		next.IndexFailures++
	} else {
		next.IndexIgnoredFailures++
	}
	return next
}

// indexRests returns until when the index of its last failed Pod is delayed.
func indexRests(s State, last events.Pod) time.Time {
	return last.Finished.Add(s.podBackoff().Delay(int(last.IndexFailures + last.IndexIgnoredFailures + 1)))
}

// indexesRest returns when the first delayed index may be tried again; zero if none is delayed.
func indexesRest(s State, c count, now time.Time) (first time.Time) {
	for _, p := range c.indexes.last {
		if end := indexRests(s, p); now.Before(end) && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}
