package sim

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
)

// StatusWritten implements Checker: what each status write must satisfy. Its precondition is the Job's version, so the decision
// was about old; whatever follows from the Job alone must be exact.
func (t *truth) StatusWritten(old, next events.Job) {
	t.recorded = t.w.now
	if c, is := next.Condition(v1alpha1.RefusedCondition); is && c.Reason == effect.StateTooLarge {
		t.standsStill(old, next)
		return
	}
	t.counters(old, next)
	t.lists(old, next)
	if next.Indexed {
		t.indexes(old, next)
	}
	t.conditions(old, next)
	t.suspension(old, next)
	t.times(old, next)
	t.accounts(next)
	t.verdict(old, next)
	t.unfinished(old, next)
	t.w.noteStatus(old, next)
}

// standsStill: if the Job's Pods cannot be remembered, the status reports it and changes in nothing else.
func (t *truth) standsStill(old, next events.Job) {
	a, b := old.Status.DeepCopy(), next.Status.DeepCopy()
	a.Conditions, b.Conditions = nil, nil
	if !equality.Semantic.DeepEqual(a, b) || old.NextSerial != next.NextSerial ||
		old.Backoff.Failures != next.Backoff.Failures || !old.Backoff.Last.Equal(next.Backoff.Last) {
		t.fail("a memory that is too large changes %+v to %+v", a, b)
	}
	for _, c := range old.Status.Conditions {
		same := func(d batchv1.JobCondition) bool { return equality.Semantic.DeepEqual(c, d) }
		if c.Type != v1alpha1.RefusedCondition && !slices.ContainsFunc(next.Status.Conditions, same) {
			t.fail("a memory that is too large changes the condition %v", c)
		}
	}
}

// counters move by exactly what leaves status.uncountedTerminatedPods.
func (t *truth) counters(old, next events.Job) {
	a, b := old.Status, next.Status
	was, is := uncounted(a), uncounted(b)
	seen := map[types.UID]bool{}
	for _, uid := range slices.Concat(is.Succeeded, is.Failed) {
		if seen[uid] {
			t.fail("uncounted lists %s twice", uid)
		}
		seen[uid] = true
		if t.of(uid).counted {
			t.fail("%s is counted a second time", uid)
		}
	}
	if !next.Indexed && b.Succeeded-a.Succeeded != int32(t.count(was.Succeeded, seen)) {
		t.fail("succeeded went from %d to %d, but uncounted lost %v", a.Succeeded, b.Succeeded, was.Succeeded)
	}
	if b.Failed-a.Failed != int32(t.count(was.Failed, seen)) {
		t.fail("failed went from %d to %d, but uncounted lost %v", a.Failed, b.Failed, was.Failed)
	}
	// A Pod that a user has made, and that is counted, may for a moment be taken for a new one by a late observation.
	if exist := t.created(next.UID, seen); int(b.Active) > exist+t.guests {
		t.fail("active is %d, but %d Pods were created that are not listed or counted", b.Active, exist)
	}
	if or(b.Ready) > b.Active {
		t.fail("ready %d exceeds active %d", *b.Ready, b.Active)
	}
	if next.Finished() && (b.Active > 0 || or(b.Terminating) > 0 || len(seen) > 0) {
		t.fail("finished with active %d, terminating %d, uncounted %d", b.Active, or(b.Terminating), len(seen))
	}
	added := completed(b).Len() - completed(a).Intersect(completed(b)).Len()
	for uid := range seen {
		if !slices.Contains(was.Succeeded, uid) && !slices.Contains(was.Failed, uid) {
			added++
		}
	}
	if most := t.w.limits.MaxUncounted; added > most {
		t.fail("%d Pods are counted at once, of at most %d", added, most)
	}
}

// count marks the UIDs that have left the list as counted and returns their number.
func (t *truth) count(was []types.UID, still map[types.UID]bool) (n int) {
	for _, uid := range was {
		if !still[uid] {
			t.of(uid).counted = true
			n++
			if p := t.holder(uid); p != nil && p.Held && !p.Orphan {
				t.fail("%s is counted while it is held", uid)
			}
		}
	}
	return n
}

// created returns how many Pods of a Job there are, or were, that are neither listed nor counted.
func (t *truth) created(owner types.UID, listed map[types.UID]bool) (n int) {
	for uid, r := range t.pods {
		if r.owner == owner && !r.counted && !listed[uid] {
			n++
		}
	}
	return n
}

func (t *truth) holder(uid types.UID) *pod {
	for _, p := range t.w.api.pods {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

// lists: every UID listed as ended belongs to a Pod that has ended so and counts.
func (t *truth) lists(old, next events.Job) {
	was, is := uncounted(old.Status), uncounted(next.Status)
	_, failing := next.Condition(batchv1.JobFailureTarget)
	_, declared := old.Condition(batchv1.JobFailureTarget)
	for _, uid := range is.Succeeded {
		if r := t.of(uid); !r.well {
			t.fail("%s is listed as succeeded and has not", uid)
		}
	}
	for _, uid := range is.Failed {
		r := t.of(uid)
		switch {
		case r.deletedByUs && !failing:
			t.fail("%s was surplus and is listed as failed", uid)
		case declared || slices.Contains(was.Failed, uid): // a failing Job counts every Pod that it terminates
		case t.ignored(r):
			t.fail("%s failed in a way that is ignored, and is listed as failed", uid)
		case old.ReplaceFailedOnly && !t.failed(r):
			t.fail("%s is listed as failed before it has failed", uid)
		case !r.ended && !r.deleted:
			t.fail("%s runs and is listed as failed", uid)
		}
	}
}

// indexes: every completed index has a Pod that succeeded, every failed one a Pod that used up its limit; no index is both, and
// none is lost.
func (t *truth) indexes(old, next events.Job) {
	st := next.Status
	set, err := intervals.Parse(st.CompletedIndexes)
	if err != nil || set.Len() != int(st.Succeeded) {
		t.fail("completedIndexes %q, succeeded %d: %v", st.CompletedIndexes, st.Succeeded, err)
	}
	lost, err := intervals.Parse(or(st.FailedIndexes))
	if err != nil || (st.FailedIndexes != nil) != (next.BackoffLimitPerIndex != nil) {
		t.fail("failedIndexes %q: %v", or(st.FailedIndexes), err)
	}
	if set.Intersect(lost).Len() > 0 {
		t.fail("completedIndexes %s and failedIndexes %s overlap", set, lost)
	}
	n := int(*next.Completions)
	for _, x := range [][2]intervals.Set{{completed(old.Status), set}, {failedIndexes(old.Status), lost}} {
		if was := x[0].Below(n); was.Intersect(x[1]).Len() != was.Len() {
			t.fail("of the indexes %s only %s are left", was, x[1])
		}
		if x[1].Below(n).Len() != x[1].Len() {
			t.fail("some of the indexes %s are beyond completions %d", x[1], n)
		}
	}
	done, surplus := map[int]bool{}, map[int]bool{}
	for _, r := range t.pods {
		if r.well {
			done[r.index] = true
		}
		if t.endsIndex(next, r) {
			surplus[r.index] = true
		}
	}
	for i := range n {
		if set.Has(i) && !done[i] {
			t.fail("index %d is completed, and no Pod of it has succeeded", i)
		}
		if lost.Has(i) && !surplus[i] {
			t.fail("index %d is failed, and no Pod of it used up its limit", i)
		}
	}
	t.exits(old, next, lost)
}

// exits: of the lowest failed indexes each has the exit of a Pod that used up its limit, and keeps it: Pods of it that end later because the
// Job fails do not matter.
func (t *truth) exits(old, next events.Job, lost intervals.Set) {
	if got, want := len(next.FailedIndexExits), min(events.MaxIndexExits, lost.Len()); got != want {
		t.fail("of the failed indexes %s, %d have an exit, not %d: %v", lost, got, want, next.FailedIndexExits)
	}
	was := map[int]events.IndexExit{}
	for _, e := range old.FailedIndexExits {
		was[e.Index] = e
	}
	for i, e := range next.FailedIndexExits {
		before, recorded := was[e.Index]
		fatal := func(r *record) bool {
			return r.index == e.Index && t.endsIndex(next, r) && (e.ExitCode == r.code || e.ExitCode == 0 && r.deleted)
		}
		switch {
		case !lost.Has(e.Index), i > 0 && e.Index <= next.FailedIndexExits[i-1].Index:
			t.fail("exits %v of the failed indexes %s", next.FailedIndexExits, lost)
		case recorded && e != before:
			t.fail("the exit of an index changes from %v to %v", before, e)
		case !recorded && !slices.ContainsFunc(slices.Collect(maps.Values(t.pods)), fatal):
			t.fail("no Pod that used up the limit of its index has ended with %v", e)
		}
	}
}

// endsIndex reports whether the Pod's failure exceeds the limit of its index.
func (t *truth) endsIndex(j events.Job, r *record) bool {
	if j.BackoffLimitPerIndex == nil {
		return false
	}
	failed := t.failed(r) || !j.ReplaceFailedOnly && r.deleted
	return failed && (r.failures >= *j.BackoffLimitPerIndex || t.action(r) == batchv1.PodFailurePolicyActionFailIndex)
}

// conditions: final conditions stay, and those of other writers are left alone.
func (t *truth) conditions(old, next events.Job) {
	if old.Finished() && !next.Finished() {
		t.fail("a finished Job is unfinished")
	}
	own := []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobComplete, batchv1.JobFailed, v1alpha1.RefusedCondition,
		v1alpha1.BackingOffCondition, v1alpha1.PodsWaitingCondition, v1alpha1.IgnoredCondition, v1alpha1.UnsupportedCondition}
	for _, c := range old.Status.Conditions {
		same := func(d batchv1.JobCondition) bool { return equality.Semantic.DeepEqual(c, d) }
		if !slices.Contains(own, c.Type) && !slices.ContainsFunc(next.Status.Conditions, same) {
			t.fail("the condition %s, which was there, is gone or changed", c.Type)
		}
	}
	if next.Finished() && !old.Finished() {
		t.leftBehind(next)
	}
	t.waiting(old, next)
}

// waiting: a Job shows Pods that wait only if a Pod is as old as its user is patient, and not once it has finished.
func (t *truth) waiting(old, next events.Job) {
	if _, is := next.Condition(v1alpha1.PodsWaitingCondition); !is {
		return
	}
	if next.Finished() {
		t.fail("finished with Pods that wait")
	}
	if _, was := old.Condition(v1alpha1.PodsWaitingCondition); was {
		return
	}
	const longWait = 30 * time.Second
	for _, r := range t.pods { // a Pod that a user made may have been created at any time
		if !t.w.decided.Before(r.created.Add(longWait - time.Second)) {
			return
		}
	}
	t.fail("Pods are said to wait, and none is as old as %v", longWait)
}

// leftBehind: a Job does not finish while it holds Pods. Only a Pod that it cannot know of may be left: one created by a worker
// whose memory was lost, or one withdrawn when a user scaled to zero, or when by one of two clocks the deadline was over.
func (t *truth) leftBehind(j events.Job) {
	torn := t.w.fleet.skewed && j.ActiveDeadlineSeconds != nil
	for _, p := range t.w.api.pods {
		if p.owner != j.UID || !p.Held {
			continue
		}
		if t.losses+t.zombies+t.withdrawals+t.guests == 0 && !torn {
			t.fail("the Job finishes while %s is held", p.Name)
		}
		t.setUncertain(p.UID)
	}
}

// times: each time in a status is what the clock of the deciding reconciler showed, to the second, but that a Job has started with one of
// its Pods, unless it was suspended; and no end is before the start, even one that another process wrote.
func (t *truth) times(old, next events.Job) {
	a, b := old.Status, next.Status
	shown := func(at *metav1.Time) bool {
		return !at.After(t.w.decided.Add(time.Second)) && !at.Time.Before(t.w.decided.Add(-time.Second))
	}
	if b.StartTime != nil && !b.StartTime.Equal(a.StartTime) && !shown(b.StartTime) && (old.HasCondition(batchv1.JobSuspended) || !t.beganWithAPod(next.UID, b.StartTime)) {
		t.fail("started at %v, and decided at %v", b.StartTime, t.w.decided)
	}
	switch done := b.CompletionTime; {
	case done == nil || done.Equal(a.CompletionTime):
	case done.Before(b.StartTime):
		t.fail("completed at %v and started at %v", done, b.StartTime)
	case !shown(done) && !done.Equal(b.StartTime):
		t.fail("completed at %v, and decided at %v", done, t.w.decided)
	}
}

// beganWithAPod reports whether the time is that of the creation of one of the Job's Pods, to the second.
func (t *truth) beganWithAPod(job types.UID, at *metav1.Time) bool {
	for _, r := range t.pods {
		if r.owner == job && at.Time.Equal(r.created.Truncate(time.Second)) {
			return true
		}
	}
	return false
}

// suspension: the write that suspends a Job also reports that no Pod is active and resets startTime; the write that resumes it
// also sets startTime.
func (t *truth) suspension(old, next events.Job) {
	a, b := suspended(old), suspended(next)
	st := next.Status
	switch {
	case a != corev1.ConditionTrue && b == corev1.ConditionTrue && (!old.Suspended || st.Active > 0 || st.StartTime != nil):
		t.fail("becomes Suspended (asked for: %v) with active %d and startTime %v", old.Suspended, st.Active, st.StartTime)
	case a == corev1.ConditionTrue && b != corev1.ConditionTrue && (old.Suspended || st.StartTime == nil):
		t.fail("is no longer Suspended (asked for: %v) with startTime %v", !old.Suspended, st.StartTime)
	case a == "" && b == corev1.ConditionFalse:
		t.fail("has Suspended=False though it was never suspended")
	}
	if !old.Suspended && st.StartTime == nil && len(old.Unsupported) == 0 {
		t.fail("is not suspended and has not started")
	}
	if old.Status.StartTime != nil && !old.Suspended && a != corev1.ConditionTrue && !st.StartTime.Equal(old.Status.StartTime) {
		t.fail("startTime moves from %v to %v", old.Status.StartTime, st.StartTime)
	}
	if next.Finished() && st.StartTime == nil && (!next.Suspended || next.Completions == nil || *next.Completions != 0) {
		t.fail("finishes and has never started")
	}
}

// suspended returns the status of the condition; "" if there is none.
func suspended(j events.Job) corev1.ConditionStatus {
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobSuspended {
			return c.Status
		}
	}
	return ""
}
