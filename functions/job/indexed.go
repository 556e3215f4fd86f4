package job

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// indexStatus is the progress of the indexes of an Indexed Job.
type indexStatus struct {
	// recorded is the observed status.completedIndexes; completed adds the newly succeeded ones.
	recorded, completed intervals.Set
	// lost is the observed status.failedIndexes; failed adds the newly failed ones. No index is in both completed and failed: the
	// one that is recorded first stays.
	lost, failed intervals.Set
	// winner is the newly succeeded Pod that counts for its index.
	winner map[int]types.UID
	// carrier are the Pods whose number of failures has no successor to carry it on yet; last has the same Pods by index.
	carrier map[types.UID]bool
	last    map[int]events.Pod
	// fatal are the Pods because of which indexes have newly failed, by index.
	fatal map[int]events.Pod
}

// readIndexStatus reads the indexes of the status and adds the Pods that have newly ended. The order is upstream's: successes,
// failed indexes, and Pods that wait for a successor.
func readIndexStatus(s State, listed map[types.UID]events.PodResult) indexStatus {
	b := indexStatus{recorded: indexes(s.Job, s.Job.Status.CompletedIndexes), winner: map[int]types.UID{}}
	if f := s.Job.Status.FailedIndexes; f != nil {
		b.lost = indexes(s.Job, *f)
	}
	var won []int
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		p := r.Pod
		if r.held() && mine(s.Job, p) && p.Phase == events.Succeeded && counts(s.Job, p) && listed[p.UID] == "" && !b.recorded.Has(p.Index) &&
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

// indexes parses the indexes of a status, as far as they lie within the current completions: an elastic Indexed Job that was
// scaled down has lost the others.
func indexes(j events.Job, text string) intervals.Set {
	set, err := intervals.Parse(text)
	if err != nil {
		// The API server rejects a status with indexes that do not parse.
		return nil
	}
	return set.Below(completions(j))
}

// completions of an Indexed Job are never nil: the API server ensures that.
func completions(j events.Job) int {
	if j.Completions == nil {
		return 0
	}
	return int(*j.Completions)
}

// over reports whether no Pod of the index can help any more: it has succeeded or failed, or the Job no longer has it.
func (b indexStatus) over(j events.Job, p events.Pod) bool {
	return !counts(j, p) || b.completed.Has(p.Index) || b.failed.Has(p.Index)
}

// freeIndexes returns the n lowest indexes that have neither succeeded nor failed, have no Pod that may still do so, and are not
// delayed after a failure. At most room of them are new: the last failed Pod of an index stays in the state until the index is
// tried again, so a retry must be possible at any number of Pods.
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
	for index, p := range c.indexes.last { // delayed; unlike upstream, the other indexes do not wait for them
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

// duplicates returns the active Pods of an Indexed Job that cannot help: the index has ended, is out of range, or has a better
// Pod already (the one further along; upstream: appendDuplicatedIndexPodsForRemoval).
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
