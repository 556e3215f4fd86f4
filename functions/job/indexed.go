package job

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// indexStatus is how far the indexes of an Indexed Job are.
type indexStatus struct {
	// recorded is the observed status.completedIndexes, completed is that and the newly succeeded ones.
	recorded, completed intervals.Set
	// lost is the observed status.failedIndexes, failed is that and the newly failed ones. No index is in completed and in
	// failed: what is recorded first stays.
	lost, failed intervals.Set
	// winner is the newly succeeded Pod that counts for its index.
	winner map[int]types.UID
	// carrier are the Pods that hand the number of their index's failures on to a successor that is not there yet; last is the
	// same by index.
	carrier map[types.UID]bool
	last    map[int]events.Pod
}

// readIndexStatus reads the indexes of the status and adds the Pods that have newly ended. Upstream does it in the same order: successes, failed
// indexes, and who waits for a successor.
func readIndexStatus(s State, listed map[types.UID]bool) indexStatus {
	b := indexStatus{recorded: indexes(s.Job, s.Job.Status.CompletedIndexes), winner: map[int]types.UID{}}
	if f := s.Job.Status.FailedIndexes; f != nil {
		b.lost = indexes(s.Job, *f)
	}
	var won []int
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		p := r.Pod
		if r.held() && mine(s.Job, p) && p.Phase == events.Succeeded && counts(s.Job, p) && !listed[p.UID] && !b.recorded.Has(p.Index) &&
			!b.lost.Has(p.Index) && b.winner[p.Index] == "" {
			b.winner[p.Index] = p.UID
			won = append(won, p.Index)
		}
	}
	b.completed, b.failed = b.recorded.Union(intervals.Of(won...)), b.lost
	if s.Job.BackoffLimitPerIndex != nil {
		b.failures(s, listed)
	}
	return b
}

// indexes reads a list of indexes of a status, as far as it lies within the completions of today: an elastic Indexed Job
// that was scaled down has forgotten the rest.
func indexes(j events.Job, text string) intervals.Set {
	set, err := intervals.Parse(text)
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

// over says that no Pod of the index can help any more: it has succeeded or failed, or the Job no longer has it.
func (b indexStatus) over(j events.Job, p events.Pod) bool {
	return !counts(j, p) || b.completed.Has(p.Index) || b.failed.Has(p.Index)
}

// freeIndexes returns the n lowest indexes that have neither succeeded nor failed nor a Pod that may still do it, and that
// need not rest after a failure. At most room of them are new: the last failed Pod of an index is kept until the index is
// tried again, so that has to be possible however many there are.
func freeIndexes(s State, c count, n, room int, now time.Time) []int {
	var busy []int
	for _, r := range s.Pods {
		// As long as a surplus Pod is held, it may turn out to have ended already, and then its end counts.
		leaving := r.Pod.Deleting
		if r.Surplus {
			leaving = !r.Pod.Held
		}
		if r.Pod.Index >= 0 && (r.intended() || r.live() && (!leaving || s.Job.ReplaceFailedOnly)) {
			busy = append(busy, r.Pod.Index)
		}
	}
	for index, p := range c.indexes.last { // these rest; others need not wait for them, as they do upstream
		if now.Before(indexRests(s, p)) {
			busy = append(busy, index)
		}
	}
	taken := c.indexes.completed.Union(c.indexes.failed).Union(intervals.Of(busy...))
	out := make([]int, 0, n)
	for i := 0; i < completions(s.Job) && len(out) < n; i++ {
		_, again := c.indexes.last[i]
		if taken.Has(i) || !again && room == 0 {
			continue
		}
		if out = append(out, i); !again {
			room--
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
		if !r.live() || r.Surplus || r.Pod.Deleting {
			continue
		}
		if c.indexes.over(s.Job, r.Pod) {
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
