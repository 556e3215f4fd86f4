package sim

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// steady checks what must hold when nothing is left to do and the nodes are frozen: the Pods are those that the Job asks for,
// each is held, and the status agrees.
func (w *tenant) steady() error {
	j := w.api.jobs[w.uid]
	if j == nil || j.Finished() || j.Deleting {
		return nil
	}
	running := 0
	for _, p := range w.api.pods {
		if p.Terminal() || p.Deleting || p.owner != w.uid || p.Orphan {
			continue
		}
		if running++; !p.Held {
			return fmt.Errorf("%s runs and is not held", p.Name)
		}
		if late := w.plan.job.Options.PendingDeadlineSeconds; late != nil && p.Phase == events.Pending && !w.now.Before(p.Created.Add(time.Duration(*late)*time.Second)) {
			return fmt.Errorf("%s has been Pending since %s", p.Name, p.Created.Format(time.TimeOnly))
		}
	}
	_, ending := j.Condition(batchv1.JobFailureTarget)
	_, met := j.Condition(batchv1.JobSuccessCriteriaMet)
	if ending || met {
		return nil
	}
	if err := w.belonging(j); err != nil {
		return err
	}
	switch {
	case j.Suspended:
		return w.quiet(j, running)
	case j.ActiveDeadlineSeconds != nil: // every timer has fired, and none for this deadline
		return fmt.Errorf("the Job goes on for ever, its deadline is %v", deadlineOf(*j))
	}
	if j.Completions == nil && j.Status.Succeeded > 0 {
		return nil
	}
	for _, p := range w.api.pods {
		if p.Deleting && j.ReplaceFailedOnly {
			return nil // the end of the Pod is awaited
		}
	}
	want := int(j.Parallelism)
	if j.Completions != nil {
		want = min(want, int(*j.Completions)-int(j.Status.Succeeded)-failedIndexes(j.Status).Len())
	}
	if running != max(want, 0) || int(j.Status.Active) != running {
		return fmt.Errorf("%d Pods run, %d are wanted, the status says %d", running, want, j.Status.Active)
	}
	return nil
}

// quiet: a suspended Job at rest has no Pods and has not started.
func (w *tenant) quiet(j *events.Job, running int) error {
	if running > 0 || j.Status.Active > 0 || j.Status.StartTime != nil || suspended(*j) != corev1.ConditionTrue {
		return fmt.Errorf("suspended, and %d Pods run, the status says %d, startTime %v, Suspended %q", running, j.Status.Active, j.Status.StartTime, suspended(*j))
	}
	return nil
}

// belonging: a Pod that the selector matches is adopted, one that it does not match is released, and every Pod has a serial.
func (w *tenant) belonging(j *events.Job) error {
	for _, p := range w.api.pods {
		switch r := w.truth.of(p.UID); {
		case p.Deleting, w.api.receiver(p) != j.UID:
		case p.Orphan && matches(j, p) && (!p.Terminal() || !r.counted && !r.uncertain && !r.surplus):
			return fmt.Errorf("%s matches the selector and is not adopted", p.Name)
		case !p.Orphan && !matches(j, p) && (p.Held || !p.Terminal()):
			return fmt.Errorf("%s is owned by a Job whose selector does not match it", p.Name)
		case !p.Orphan && p.Serial == events.NoSerial && (p.Held || !p.Terminal()):
			return fmt.Errorf("%s has no serial", p.Name)
		}
	}
	return nil
}

// settled checks the end of the world: the Job is finished, gone or paused, and no Pod is held or runs.
func (w *tenant) settled() error {
	j := w.api.jobs[w.uid]
	paused := j != nil && (j.Parallelism == 0 || j.Suspended)
	switch {
	case j == nil:
	case j.Deleting:
		return fmt.Errorf("the Job is being deleted, and stays")
	case !j.Finished() && !paused:
		return fmt.Errorf("the Job has not finished: %v", effect.WriteJobStatus{Version: j.Version, Status: j.Status})
	case !j.Finished() && j.ActiveDeadlineSeconds != nil && !j.Suspended:
		return fmt.Errorf("the Job goes on after its deadline, started %v, %d seconds", j.Status.StartTime, *j.ActiveDeadlineSeconds)
	case !j.Finished() && j.Suspended:
		if err := w.quiet(j, 0); err != nil {
			return err
		}
	case j.Finished() && j.TTLSecondsAfterFinished != nil && w.limits.DeleteExpired:
		return fmt.Errorf("the Job has finished, and its time to live is over")
	}
	kept := 0
	for _, p := range w.api.pods {
		r := w.truth.of(p.UID)
		if p.Held && (!paused || !w.carries(j, p)) {
			return fmt.Errorf("%s (%s) is held", p.Name, p.Phase)
		}
		if !p.Terminal() {
			return fmt.Errorf("%s runs", p.Name)
		}
		if j != nil && p.owner == j.UID && !p.Orphan && r.counted && !r.uncertain && p.Phase == events.Failed && !p.Deleting {
			kept++
		}
	}
	if err := w.truth.unannounced(); err != nil || j == nil {
		return err
	}
	if err := w.truth.unannouncedPods(j); err != nil {
		return err
	}
	if limit := j.Options.FailedPodsLimit; limit != nil && kept > *limit {
		return fmt.Errorf("%d failed Pods are kept, of at most %d", kept, *limit)
	}
	if n := len(uncounted(j.Status).Succeeded) + len(uncounted(j.Status).Failed); n > 0 {
		return fmt.Errorf("%d Pods are uncounted", n)
	}
	return w.complete(j)
}

// carries reports whether the Pod is the last of a failed index whose Job goes on, so that the next Pod of the index needs it.
func (w *tenant) carries(j *events.Job, p *pod) bool {
	return !j.Finished() && j.BackoffLimitPerIndex != nil && p.Phase == events.Failed
}

// complete returns an error if an end is not counted, unless a user has discarded it. Failures after a Job has succeeded, and
// those that wait to be handed to the next Pod of their index, are not counted.
func (w *tenant) complete(j *events.Job) error {
	t := w.truth
	set := completed(j.Status)
	_, failed := j.Condition(batchv1.JobFailed)
	met, succeeds := j.Condition(batchv1.JobSuccessCriteriaMet)
	for uid, r := range t.pods {
		switch {
		case !r.ended, r.counted, r.uncertain, r.surplus, r.owner != j.UID, j.Indexed && (set.Has(r.index) || failedIndexes(j.Status).Has(r.index) || r.index < 0 || r.index >= int(*j.Completions)):
		case r.well && !failed:
			return fmt.Errorf("%s has succeeded and is not counted", uid)
		case t.failed(r) && !succeeds && (j.BackoffLimitPerIndex == nil || j.Finished()):
			return fmt.Errorf("%s has failed and is not counted", uid)
		}
	}
	// A user may have removed the finalizer of a success for which one write had no room. A Job that has met its completions is
	// over even if they are raised then.
	robbed := w.World.has(limited) && t.stripped+t.zombies+t.guests > 0 || w.has(elastic)
	if j.Completions != nil && j.Finished() && !failed && !robbed && met.Reason != batchv1.JobReasonSuccessPolicy && j.Status.Succeeded < *j.Completions {
		return fmt.Errorf("complete with %d of %d successes", j.Status.Succeeded, *j.Completions)
	}
	return nil
}
