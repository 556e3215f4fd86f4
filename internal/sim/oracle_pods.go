package sim

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// PodCreated implements Checker: no Pod of an untouched Job is created that a lost memory would not find by its name, none without its
// values, and a Pod of an index that has failed before has the number of its failures.
func (t *truth) PodCreated(j events.Job, p events.Pod, e effect.CreatePod) {
	switch {
	case j.Untouched() && (e.Serial >= int(min(j.Parallelism, or(j.Completions))) && j.Completions != nil || e.Serial >= int(j.Parallelism)):
		t.fail("%s is created before its Job has started, and is not among the first", p.Name)
	case j.Options.Parameters != e.Parameters, j.Options.Parameters != "" && p.Index >= t.w.api.values[j.Options.Parameters].Count:
		t.fail("%s of index %d is created without the values of %q", p.Name, p.Index, j.Options.Parameters)
	case e.PerIndex != (j.BackoffLimitPerIndex != nil):
		t.fail("%s: failures per index %v", p.Name, e.PerIndex)
	case j.Indexed && (p.Index < 0 || p.Index >= int(*j.Completions)) && !t.w.has(elastic):
		t.fail("%s has index %d of %d", p.Name, p.Index, *j.Completions)
	}
	t.tooEarly(j, p)
	t.inherits(j, p)
	t.made(p, j.UID)
	t.w.noteCreate(j, p)
}

// asked checks an effect before it is carried out: no Pod is created before its values are known to exist, nor for an index that
// the Job, as it was known, does not have.
func (t *truth) asked(of types.UID, e effect.Effect) {
	c, ok := e.(effect.CreatePod)
	if !ok {
		return
	}
	if c.Parameters != "" && c.Index >= t.values {
		t.fail("%s of index %d is created when values for %d completions are known", c.Name, c.Index, t.values)
	}
	if n, indexed := t.sizes[spec{of, c.Generation}]; indexed && c.Index >= n {
		t.fail("%s of index %d is created when the Job is known to have %d completions", c.Name, c.Index, n)
	}
}

// sized records how many completions an Indexed Job has.
func (t *truth) sized(j events.Job) {
	if j.Indexed {
		t.sizes[spec{j.UID, j.Generation}] = int(*j.Completions)
	}
}

// tooEarly: in calm weather no Pod is created before the delay after failures has passed. One that was intended before the
// failure may still be created during the delay; a minute is enough for that. A success that no status lists yet resets the
// delay.
func (t *truth) tooEarly(j events.Job, p events.Pod) {
	if t.w.calmAt.IsZero() || t.w.now.Sub(t.w.calmAt) < time.Minute || t.w.now.Sub(t.recorded) < time.Minute/10 || j.BackoffLimitPerIndex != nil {
		return
	}
	for _, r := range t.pods {
		if r.owner == j.UID && r.well && !r.counted {
			return
		}
	}
	delay := 10 * time.Second
	if s := j.Options.BackoffSeconds; s != nil {
		delay = time.Duration(*s) * time.Second
	}
	for i := 1; i < j.Backoff.Failures; i++ {
		delay = min(2*delay, 10*time.Minute)
	}
	if ends := j.Backoff.Last.Add(delay); j.Backoff.Failures > 0 && t.w.fleet.ahead().Before(ends) {
		t.fail("%s is created %v before the backoff of %d failures ends", p.Name, ends.Sub(t.w.fleet.ahead()), j.Backoff.Failures)
	}
}

// inherits: failures of an index are handed from Pod to Pod. They are exact unless a user has interfered.
func (t *truth) inherits(j events.Job, p events.Pod) {
	l := t.lines[line{j.UID, p.Index}]
	if j.BackoffLimitPerIndex == nil || !t.strict() {
		return
	}
	var failures, ignored int32
	if len(l) > 0 {
		last := l[len(l)-1]
		if last.surplus || last.well || last.uncertain {
			return // it is not counted, and the failures that it carried are lost with it
		}
		failures, ignored = last.failures, last.ignored
		switch {
		case t.ignored(last):
			ignored++
		case t.failed(last), !j.ReplaceFailedOnly && last.deleted:
			failures++
		case t.scalings > 0:
			return // the last one is surplus, and about to be deleted
		default:
			t.fail("%s is created for index %d, of which %s still runs", p.Name, p.Index, last.name)
		}
	}
	switch {
	case p.IndexFailures != failures || p.IndexIgnoredFailures != ignored:
		t.fail("%s of index %d has %d failures and %d ignored ones in its annotations; the truth is %d and %d", p.Name, p.Index, p.IndexFailures, p.IndexIgnoredFailures, failures, ignored)
	case failures > *j.BackoffLimitPerIndex:
		t.fail("%s is created for index %d, which has failed %d times", p.Name, p.Index, failures)
	}
}

// FinalizerRemoved implements Checker: a finalizer may be removed only once the Pod's end is safe in the status, or is not
// counted.
func (t *truth) FinalizerRemoved(p events.Pod, owner types.UID, by effect.Effect) {
	j := t.w.api.jobs[owner]
	if j == nil || j.Deleting || p.Orphan {
		return
	}
	r := t.of(p.UID)
	if d, ok := by.(effect.DeletePod); ok && d.RemoveFinalizer {
		if p.Phase == events.Succeeded && t.zombies == 0 && !j.Finished() {
			t.fail("%s has succeeded and its end is lost", p.Name)
		}
		r.surplus, r.deleted = true, true
		return
	}
	if j.Finished() {
		return
	}
	t.unheld(*j, p)
	worthless := j.Indexed && (p.Index < 0 || p.Index >= min(t.least, int(*j.Completions)))
	u := uncounted(j.Status)
	switch {
	case worthless, j.Indexed && p.Phase == events.Succeeded && completed(j.Status).Union(failedIndexes(j.Status)).Has(p.Index):
	case r.uncertain: // a user has interfered
	case !r.counted && !slices.Contains(u.Succeeded, p.UID) && !slices.Contains(u.Failed, p.UID) && !t.ignored(r):
		t.fail("%s (%s) loses its finalizer before its UID is safe in the status", p.Name, p.Phase)
	default:
		t.handedOver(*j, p)
	}
}

// handedOver: the last failed Pod of an index is held until another Pod carries the number of the index's failures.
func (t *truth) handedOver(j events.Job, p events.Pod) {
	_, failing := j.Condition(batchv1.JobFailureTarget)
	_, met := j.Condition(batchv1.JobSuccessCriteriaMet)
	if j.BackoffLimitPerIndex == nil || failing || met || completed(j.Status).Has(p.Index) || failedIndexes(j.Status).Has(p.Index) || !t.strict() {
		return
	}
	for _, other := range t.lines[line{j.UID, p.Index}] {
		if other.failures+other.ignored > p.IndexFailures+p.IndexIgnoredFailures {
			return
		}
	}
	t.fail("%s loses its finalizer, and no other Pod carries its %d failures of index %d", p.Name, p.IndexFailures+1, p.Index)
}

// PodDeleted implements Checker: the reconciler deletes a Pod without removing its finalizer before.
func (t *truth) PodDeleted(p events.Pod, owner types.UID, e effect.DeletePod) {
	r := t.of(p.UID)
	defer func() { r.deleted = true }()
	j := t.w.api.jobs[owner]
	wait := t.w.plan.job.Options.PendingDeadlineSeconds
	switch {
	case p.Orphan: // a user orphaned it first
	case p.Phase == events.Failed && (j == nil || j.Finished() || has(*j, batchv1.JobFailureTarget) || r.uncertain):
		// terminated with its Job, or while it was an orphan
	case p.Phase == events.Failed && p.Held:
		t.fail("%s has failed and is deleted while it is held", p.Name)
	case p.Phase == events.Failed:
		t.tooMany(j, p)
	case e.Report.Reason != "":
		if wait == nil || p.Phase != events.Pending || t.w.fleet.ahead().Before(p.Created.Add(time.Duration(*wait)*time.Second)) {
			t.fail("%s (%s) is deleted for being Pending too long, which it is not", p.Name, p.Phase)
		}
		t.w.row("pending-deadline")
	case p.Held:
		r.deletedByUs = true
	}
}

// tooMany: only a counted failed Pod is deleted for the limit, and only if enough newer ones have failed. Enough is the lowest
// limit so far, since an older decision may be carried out late.
func (t *truth) tooMany(j *events.Job, p events.Pod) {
	r := t.of(p.UID)
	safe := r.counted || r.surplus || t.ignored(r) || j.Indexed && (p.Index < 0 || p.Index >= t.least) || slices.Contains(uncounted(j.Status).Failed, p.UID)
	if !safe {
		t.fail("%s has failed and is deleted before it is counted", p.Name)
	}
	newer := 0
	for _, other := range t.pods {
		if other != r && other.owner == r.owner && other.ended && !other.well && !other.finished.Before(r.finished) {
			newer++
		}
	}
	if newer < t.keeps {
		t.fail("%s is deleted, one of the %d newest failed Pods", p.Name, t.keeps)
	}
	t.w.row("failed-pods-limit")
}

// PodAdopted implements Checker: an adopted Pod is held, unless it has been counted before.
func (t *truth) PodAdopted(j events.Job, p events.Pod, e effect.AdoptPod) {
	r := t.of(p.UID)
	held := p.Held || e.Hold
	u := uncounted(j.Status)
	listed := slices.Contains(u.Succeeded, p.UID) || slices.Contains(u.Failed, p.UID)
	switch {
	case e.Serial < 0:
		t.fail("%s is adopted without a serial", p.Name)
	case !held && !p.Terminal() && !p.Deleting:
		t.fail("%s is adopted and not held", p.Name)
	case !held && !p.Deleting && !listed && !r.counted && !r.uncertain && !r.surplus && !t.ignored(r):
		t.fail("%s is adopted and not held, and was never counted", p.Name)
	case e.Hold && !p.Held && r.counted && p.Serial == events.NoSerial:
		t.countsAgain(r)
	case e.Hold && !p.Held && r.counted:
		t.fail("%s is adopted and held, and was counted before", p.Name)
	}
	if p.Orphan {
		t.w.row("adoption")
	} else {
		t.w.row("no-serial")
	}
	if r.owner != j.UID {
		t.made(p, j.UID)
	}
}

// countsAgain: a user who removes serial and owner of a counted Pod makes it indistinguishable from one that was never counted.
// It is counted once more, as by the built-in controller.
func (t *truth) countsAgain(r *record) {
	r.again++
	if r.counted, r.uncertain = false, true; r.well {
		t.successes++
	}
}

// PodReleased implements Checker: only a Pod that the selector does not match is released.
func (t *truth) PodReleased(p events.Pod, owner types.UID) {
	if p.Labels == nil && t.guests == 0 {
		t.fail("%s is released though its Job's selector matches it", p.Name)
	}
	if t.w.api.jobs[owner] != nil {
		t.w.row("release-of-pods")
	}
	t.of(p.UID).uncertain = true
}

// JobDeleted implements Checker: a Job is deleted once its time to live is over, and only if the reconciler is to do it.
func (t *truth) JobDeleted(j events.Job) {
	ttl := j.TTLSecondsAfterFinished
	if !t.w.limits.DeleteExpired || !j.Finished() || ttl == nil || t.w.decided.Before(j.FinishedAt().Add(time.Duration(*ttl)*time.Second)) {
		t.fail("the Job is deleted before its time")
	}
	t.w.row("ttl")
}

// PodRepeated implements Checker: a Pod of this name existed before, or a FindPod did not find it. The cause is a worker that
// slept between its look at the clock and the call, another worker on the same key at that moment, or a user who deleted the
// first Pod by force.
func (t *truth) PodRepeated(events.Pod) { t.zombies++ }
