package sim

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// truth records what really happened, and checks every effect on the API server against it.
type truth struct {
	w   *tenant
	Err error // the first law that was broken

	pods  map[types.UID]*record
	lines map[line][]*record       // the Pods of each index, in the order of their creation
	told  map[string]*moment       // announcements due to subscribers, by id
	ends  map[types.UID]*podMoment // the same for ends of Pods
	// completed are the indexes that any status has listed as completed.
	completed map[line]bool
	// sizes are the completions that Indexed Jobs have had.
	sizes map[spec]int
	most  int // the highest parallelism that the Job has had
	least int // the fewest completions that an Indexed Job has had
	keeps int // the lowest limit of failed Pods so far

	values    int       // the most completions for which values were found
	successes int       // Pods that have succeeded
	recorded  time.Time // when the last status was written

	losses      int // how often memory was lost
	withdrawals int // how often intended Pods may have been withdrawn
	zombies     int // Pods created by a worker that slept between its last look at the clock and the call
	scalings    int // how often users have scaled the Job
	guests      int // how often users have moved Pods that the Job had not created into it, or others out of it
	stripped    int // how often a user or a controller removed a finalizer
}

// record is the truth about one Pod.
type record struct {
	uid         types.UID
	owner       types.UID
	name        string
	index       int
	failures    int32 // how often its index had failed before, by its annotations
	ignored     int32
	ended, well bool
	code        int32
	evicted     bool
	counted     bool // its UID has left status.uncounted into a counter
	again       int  // how often it was changed so that it looks like a Pod that was never counted
	uncertain   bool // a user has interfered: whether it is counted is uncertain
	deletedByUs bool // as surplus, and held until then
	deleted     bool // by the reconciler, a user or a controller
	surplus     bool // a DeletePod removed its finalizer while it ran: not counted
	created     time.Time
	finished    time.Time
}

// spec is one version of a Job's spec.
type spec struct {
	job        types.UID
	generation int64
}

// line is an index of a Job.
type line struct {
	job   types.UID
	index int
}

func newTruth(w *tenant) *truth {
	t := &truth{w: w, pods: map[types.UID]*record{}, lines: map[line][]*record{}, told: map[string]*moment{}, ends: map[types.UID]*podMoment{}, completed: map[line]bool{}, sizes: map[spec]int{}, most: int(w.plan.job.Parallelism), least: 1 << 30, keeps: 1 << 30}
	t.limited(w.plan.job.Options.FailedPodsLimit)
	if w.plan.job.Indexed {
		t.least = int(*w.plan.job.Completions)
	}
	return t
}

// of returns the record of a Pod.
func (t *truth) of(uid types.UID) *record {
	r := t.pods[uid]
	if r == nil {
		r = &record{uid: uid, index: events.NoIndex}
		t.pods[uid] = r
	}
	return r
}

// made records a new Pod of a Job.
func (t *truth) made(p events.Pod, owner types.UID) {
	r := t.of(p.UID)
	r.owner, r.name, r.index, r.failures, r.ignored, r.created = owner, p.Name, p.Index, p.IndexFailures, p.IndexIgnoredFailures, p.Created
	l := line{owner, p.Index}
	t.lines[l] = append(t.lines[l], r)
}

func (t *truth) fail(format string, args ...any) {
	if t.Err == nil {
		t.Err = fmt.Errorf(format, args...)
		t.w.trace("ORACLE   %v", t.Err)
	}
}

// ended records how a Pod has ended. The end of a zombie is not counted, since its Job had finished. That of an orphan belongs
// to no Job, though a Job may still adopt it.
func (t *truth) ended(p *pod, well bool, code int32) {
	r := t.of(p.UID)
	r.index, r.ended, r.well, r.code, r.finished = p.Index, true, well, code, t.w.now.Truncate(time.Second)
	if j := t.w.api.jobs[p.owner]; p.Orphan || j == nil || j.Finished() || j.Indexed && r.index >= t.least {
		r.uncertain = true
	}
	if well {
		t.successes++
	}
}

func (t *truth) setUncertain(uid types.UID) { t.of(uid).uncertain = true }

// guest records that a user has moved a Pod into the Job or out of it.
func (t *truth) guest(p *pod) {
	t.guests++
	if r := t.of(p.UID); p.Terminal() || p.Deleting {
		r.uncertain = true
	}
	t.of(p.UID).index = p.Index
}

func (t *truth) scaled(to int32) {
	t.scalings++
	t.most = max(t.most, int(to))
	if to == 0 {
		t.withdrawals++
	}
}

// limited records a new limit of failed Pods, nil for none.
func (t *truth) limited(to *int) {
	if to != nil {
		t.keeps = min(t.keeps, *to)
	}
}

// stretched records new completions: successes of indexes that are now out of range may be forgotten.
func (t *truth) stretched(to int32) {
	t.withdrawals++
	t.least = min(t.least, int(to))
	for _, r := range t.pods {
		if r.index >= int(to) {
			r.uncertain = true
		}
	}
}

// paused records that the Job was suspended or resumed: intended Pods are withdrawn.
func (t *truth) paused() { t.withdrawals++ }

// renewed records that another Job has replaced this one.
func (t *truth) renewed() {
	for _, r := range t.pods {
		r.uncertain = true
	}
	t.most = max(t.most, int(t.w.plan.job.Parallelism))
}

func (t *truth) forgot() {
	t.losses++
	t.forgetMoments()
}

// strict reports whether nothing has happened that could have created a Pod unknown to its Job.
func (t *truth) strict() bool {
	return t.losses+t.withdrawals+t.zombies+t.guests+t.stripped == 0
}

// action returns what the podFailurePolicy does about a Pod's failure, from the table that the policy was generated from. An
// evicted Pod is killed, with an exit code that no rule names.
func (t *truth) action(r *record) batchv1.PodFailurePolicyAction {
	if r.evicted && t.w.plan.evicted != "" {
		return t.w.plan.evicted
	}
	return t.w.plan.fates[r.code]
}

// failed reports whether the Pod has failed in a way that counts; ignored, whether it has in a way that does not.
func (t *truth) failed(r *record) bool {
	return r.ended && !r.well && t.action(r) != batchv1.PodFailurePolicyActionIgnore
}

func (t *truth) ignored(r *record) bool {
	return r.ended && !r.well && t.action(r) == batchv1.PodFailurePolicyActionIgnore
}

// check checks what must hold at every step.
func (w *tenant) check() error {
	t := w.truth
	running, leaving := 0, 0
	for _, p := range w.api.pods {
		switch {
		case p.owner != w.uid || p.Orphan || p.Terminal():
		case p.Deleting:
			leaving++
		default:
			running++
		}
	}
	if w.plan.job.ReplaceFailedOnly { // a terminating Pod has no successor yet
		running += leaving
	}
	if running > t.most && t.losses+t.zombies+t.guests == 0 {
		t.fail("%d Pods run where at most %d were ever allowed", running, t.most)
	}
	if j := w.api.jobs[w.uid]; j != nil && !j.Indexed {
		if n := int(j.Status.Succeeded) + len(uncounted(j.Status).Succeeded); n > t.successes {
			t.fail("status has %d successes, the truth %d", n, t.successes)
		}
	}
	return t.Err
}

func uncounted(st batchv1.JobStatus) batchv1.UncountedTerminatedPods {
	if st.UncountedTerminatedPods == nil {
		return batchv1.UncountedTerminatedPods{}
	}
	return *st.UncountedTerminatedPods
}

// completed and failedIndexes read the index sets of a status.
func completed(st batchv1.JobStatus) intervals.Set {
	set, _ := intervals.Parse(st.CompletedIndexes)
	return set
}

func failedIndexes(st batchv1.JobStatus) intervals.Set {
	set, _ := intervals.Parse(or(st.FailedIndexes))
	return set
}
