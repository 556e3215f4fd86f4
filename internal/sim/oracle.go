package sim

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
)

// truth is what really happened, and holds every effect on the API server against it.
type truth struct {
	w   *World
	Err error // the first law that was broken

	succeeded, failed map[types.UID]bool // how Pods really ended
	index             map[types.UID]int
	counted           map[types.UID]bool // UIDs that have left status.uncounted into a counter
	excused           map[types.UID]bool // a user took the finalizer off: nobody can count these for sure
	deleted           map[types.UID]bool // by us, and not released before
	surplus           map[types.UID]bool // released by a deletion while they ran: they count for nothing
	most              int                // the highest parallelism the Job has had
	losses            int                // how often memory was lost
	withdrawals       int                // how often intended Pods may have been taken back
	zombies           int                // Pods made by a worker that slept between its last look at the clock and the call
}

func newTruth(w *World) *truth {
	return &truth{w: w, succeeded: map[types.UID]bool{}, failed: map[types.UID]bool{}, index: map[types.UID]int{}, counted: map[types.UID]bool{},
		excused: map[types.UID]bool{}, deleted: map[types.UID]bool{}, surplus: map[types.UID]bool{}, most: int(w.plan.job.Parallelism)}
}

func (t *truth) fail(format string, args ...any) {
	if t.Err == nil {
		t.Err = fmt.Errorf(format, args...)
		t.w.trace("ORACLE   %v", t.Err)
	}
}

func (t *truth) ended(p events.Pod, owner types.UID, well bool) {
	t.index[p.UID] = p.Index
	if j := t.w.api.jobs[owner]; j == nil || j.Finished() {
		t.excuse(p.UID) // a zombie: whatever it did, its Job was over
	}
	if well {
		t.succeeded[p.UID] = true
	} else {
		t.failed[p.UID] = true
	}
}

func (t *truth) excuse(uid types.UID) { t.excused[uid] = true }

func (t *truth) scaled(to int32) {
	t.most = max(t.most, int(to))
	if to == 0 {
		t.withdrawals++
	}
}

func (t *truth) forgot() { t.losses++ }

// StatusWritten implements Checker: what each status write must satisfy.
func (t *truth) StatusWritten(old, next events.Job) {
	a, b := old.Status, next.Status
	was, is := uncounted(a), uncounted(b)
	seen := map[types.UID]bool{}
	for _, uid := range append(append([]types.UID{}, is.Succeeded...), is.Failed...) {
		if seen[uid] {
			t.fail("uncounted lists %s twice", uid)
		}
		seen[uid] = true
		if t.counted[uid] {
			t.fail("%s is counted a second time", uid)
		}
	}
	if !next.Indexed && b.Succeeded-a.Succeeded != int32(t.count(was.Succeeded, seen)) {
		t.fail("succeeded went from %d to %d, but uncounted lost %v", a.Succeeded, b.Succeeded, was.Succeeded)
	}
	if b.Failed-a.Failed != int32(t.count(was.Failed, seen)) {
		t.fail("failed went from %d to %d, but uncounted lost %v", a.Failed, b.Failed, was.Failed)
	}
	_, failing := next.Condition(batchv1.JobFailureTarget)
	for _, uid := range is.Failed {
		if t.deleted[uid] && !failing {
			t.fail("%s was one too many and is listed as failed", uid)
		}
	}
	for _, uid := range is.Succeeded {
		if !t.succeeded[uid] {
			t.fail("%s is listed as succeeded and has not", uid)
		}
	}
	if next.Indexed {
		t.indexes(b)
	}
	if *b.Ready > b.Active {
		t.fail("ready %d exceeds active %d", *b.Ready, b.Active)
	}
	if old.Finished() && !next.Finished() {
		t.fail("a finished Job is unfinished")
	}
	if next.Finished() && (b.Active > 0 || *b.Terminating > 0 || len(seen) > 0) {
		t.fail("finished with active %d, terminating %d, uncounted %d", b.Active, *b.Terminating, len(seen))
	}
	if next.Finished() && !old.Finished() {
		t.leftBehind(next)
	}
	if len(seen) > 500 {
		t.fail("uncounted lists %d Pods", len(seen))
	}
}

// leftBehind: a Job does not finish over Pods that it holds. Only one that it cannot know of may be left: made by a worker
// whose memory was lost, or whose creation was taken back when a user scaled to nothing.
func (t *truth) leftBehind(j events.Job) {
	for _, p := range t.w.api.pods {
		if p.owner != j.UID || !p.Held {
			continue
		}
		if t.losses+t.zombies+t.withdrawals == 0 {
			t.fail("the Job finishes while %s is held", p.Name)
		}
		t.excuse(p.UID)
	}
}

// count marks the UIDs that have left the list as counted and returns how many they are.
func (t *truth) count(was []types.UID, still map[types.UID]bool) (n int) {
	for _, uid := range was {
		if !still[uid] {
			t.counted[uid] = true
			n++
			if p := t.holder(uid); p != nil && p.Held {
				t.fail("%s is counted while it is held", uid)
			}
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

// indexes: every completed index belongs to a Pod that succeeded.
func (t *truth) indexes(st batchv1.JobStatus) {
	set, err := intervals.Parse(st.CompletedIndexes)
	if err != nil || set.Len() != int(st.Succeeded) {
		t.fail("completedIndexes %q, succeeded %d: %v", st.CompletedIndexes, st.Succeeded, err)
	}
	done := map[int]bool{}
	for uid := range t.succeeded {
		done[t.index[uid]] = true
	}
	for i := range 64 {
		if set.Has(i) && !done[i] {
			t.fail("index %d is completed and no Pod of it has succeeded", i)
		}
	}
}

// PodReleased implements Checker: a finalizer may go only once the Pod's end is safe in the status, or counts for nothing.
func (t *truth) PodReleased(p events.Pod, owner types.UID, by effect.Effect) {
	j := t.w.api.jobs[owner]
	if j == nil || j.Deleting {
		return
	}
	if d, ok := by.(effect.DeletePod); ok && d.Release {
		if p.Phase == events.Succeeded && t.zombies == 0 && !j.Finished() {
			t.fail("%s has succeeded and is thrown away", p.Name)
		}
		t.surplus[p.UID] = true
		return
	}
	if t.counted[p.UID] || j.Finished() {
		return
	}
	u := uncounted(j.Status)
	for _, uid := range append(append([]types.UID{}, u.Succeeded...), u.Failed...) {
		if uid == p.UID {
			return
		}
	}
	set, _ := intervals.Parse(j.Status.CompletedIndexes)
	if j.Indexed && p.Phase == events.Succeeded && set.Has(p.Index) {
		return
	}
	t.fail("%s (%s) is released before its UID is safe in the status", p.Name, p.Phase)
}

// PodDeleted implements Checker: we have deleted a Pod that we hold.
func (t *truth) PodDeleted(p events.Pod) { t.deleted[p.UID] = true }

// PodRepeated implements Checker: a Pod of this name has been before, or was looked for in vain. That takes a worker that
// slept between its look at the clock and the call, a second one that was at the key just then, or a user who took the
// first Pod away by force.
func (t *truth) PodRepeated(events.Pod) { t.zombies++ }

// Check holds at every step.
func (w *World) Check() error {
	t := w.truth
	running := 0
	for _, p := range w.api.pods {
		if p.owner == w.uid && !p.Terminal() && !p.Deleting {
			running++
		}
	}
	if running > t.most && t.losses+t.zombies == 0 {
		t.fail("%d Pods run where at most %d were ever allowed", running, t.most)
	}
	if j := w.api.jobs[w.uid]; j != nil && !j.Indexed {
		if n := int(j.Status.Succeeded) + len(uncounted(j.Status).Succeeded); n > len(t.succeeded) {
			t.fail("status has %d successes, the truth %d", n, len(t.succeeded))
		}
	}
	return t.Err
}

// Steady holds when nothing is left to do and the nodes are frozen: the fleet is what the Job asks for, every Pod of it is
// held, and the status says so.
func (w *World) Steady() error {
	j := w.api.jobs[w.uid]
	if j == nil || j.Finished() {
		return nil
	}
	want := int(j.Parallelism)
	if j.Completions != nil {
		want = min(want, int(*j.Completions)-int(j.Status.Succeeded))
	}
	running := 0
	for _, p := range w.api.pods {
		if p.Terminal() || p.Deleting {
			continue
		}
		if running++; !p.Held {
			return fmt.Errorf("%s runs and nobody holds it", p.Name)
		}
	}
	if _, ending := j.Condition(batchv1.JobFailureTarget); ending || j.Completions == nil && j.Status.Succeeded > 0 {
		return nil
	}
	for _, p := range w.api.pods {
		if p.Deleting && j.ReplaceFailedOnly {
			return nil // it is waited for
		}
	}
	if running != max(want, 0) || int(j.Status.Active) != running {
		return fmt.Errorf("%d Pods run, %d are wanted, the status says %d", running, want, j.Status.Active)
	}
	return nil
}

// Settled says whether the world has come to its end: the Job finished or gone or paused, nothing held, nothing running.
func (w *World) Settled() error {
	j := w.api.jobs[w.uid]
	paused := j != nil && j.Parallelism == 0
	if j != nil && !j.Finished() && !paused {
		return fmt.Errorf("the Job has not finished: %v", effect.WriteJobStatus{Version: j.Version, Status: j.Status})
	}
	for _, p := range w.api.pods {
		if p.Held {
			return fmt.Errorf("%s (%s) is held", p.Name, p.Phase)
		}
		if !p.Terminal() {
			return fmt.Errorf("%s runs", p.Name)
		}
	}
	if j == nil {
		return nil
	}
	if n := len(uncounted(j.Status).Succeeded) + len(uncounted(j.Status).Failed); n > 0 {
		return fmt.Errorf("%d Pods are uncounted", n)
	}
	return w.complete(j)
}

// complete says whether every success was counted that nobody has thrown away.
func (w *World) complete(j *events.Job) error {
	t := w.truth
	set, _ := intervals.Parse(j.Status.CompletedIndexes)
	_, failed := j.Condition(batchv1.JobFailed)
	for uid := range t.succeeded {
		switch {
		case t.counted[uid], t.excused[uid], j.Indexed && set.Has(t.index[uid]), t.surplus[uid], failed:
		default:
			return fmt.Errorf("%s has succeeded and is not counted", uid)
		}
	}
	if j.Completions != nil && j.Finished() && !failed && j.Status.Succeeded < *j.Completions {
		return fmt.Errorf("complete with %d of %d successes", j.Status.Succeeded, *j.Completions)
	}
	return nil
}

func uncounted(st batchv1.JobStatus) batchv1.UncountedTerminatedPods {
	if st.UncountedTerminatedPods == nil {
		return batchv1.UncountedTerminatedPods{}
	}
	return *st.UncountedTerminatedPods
}
