package job

import (
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// recorded reads status.completedIndexes, as far as it lies within the completions of today: an elastic Indexed Job that
// was scaled down has forgotten the rest.
func recorded(j events.Job) intervals.Set {
	set, err := intervals.Parse(j.Status.CompletedIndexes)
	if err != nil {
		// The API server refuses a text that does not parse, so nobody can have written one.
		return nil
	}
	return set.Below(completions(j))
}

// completions of an Indexed Job are never nil: the API server sees to it.
func completions(j events.Job) int {
	if j.Completions == nil {
		return 0
	}
	return int(*j.Completions)
}

// counts says whether a Pod's end counts at all: in an Indexed Job only that of an index within its completions.
func counts(j events.Job, p events.Pod) bool {
	return !j.Indexed || p.Index >= 0 && p.Index < completions(j)
}

// freeIndexes returns the n lowest indexes that have neither succeeded nor a Pod that may still do it.
func freeIndexes(s State, c count, n int) []int {
	var busy []int
	for _, r := range s.Pods {
		leaving := r.Pod.Deleting || r.Doomed
		if r.Pod.Index >= 0 && (r.intended() || r.live() && (!leaving || s.Job.ReplaceFailedOnly)) {
			busy = append(busy, r.Pod.Index)
		}
	}
	taken := c.completed.Union(intervals.Of(busy...))
	out := make([]int, 0, n)
	for i := 0; i < completions(s.Job) && len(out) < n; i++ {
		if !taken.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// duplicates lists the active Pods of an Indexed Job that cannot help: of an index that is done, out of range, or has a
// better Pod already (the one further along; upstream: appendDuplicatedIndexPodsForRemoval).
func duplicates(s State, c count) (serials []int) {
	best := map[int]int{}
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		if !r.live() || r.Doomed || r.Pod.Deleting {
			continue
		}
		if !counts(s.Job, r.Pod) || c.completed.Has(r.Pod.Index) {
			serials = append(serials, serial)
			continue
		}
		other, taken := best[r.Pod.Index]
		switch {
		case !taken:
			best[r.Pod.Index] = serial
		case expendable(s.Pods[other].Pod, r.Pod) < 0:
			serials, best[r.Pod.Index] = append(serials, other), serial
		default:
			serials = append(serials, serial)
		}
	}
	return serials
}
