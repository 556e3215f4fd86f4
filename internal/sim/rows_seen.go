package sim

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// noteStatus records the rows that show in a status write.
func (w *tenant) noteStatus(old, next events.Job) {
	w.row("finalizer")
	a, b := old.Status, next.Status
	note := func(id string, is bool) {
		if is {
			w.row(id)
		}
	}
	was, is := uncounted(a), uncounted(b)
	note("start-time", a.StartTime == nil && b.StartTime != nil)
	note("active-ready-terminating", b.Active > 0 && or(b.Ready) > 0 && or(b.Terminating) > 0)
	note("suspend", suspended(old) != corev1.ConditionTrue && suspended(next) == corev1.ConditionTrue)
	note("resume", suspended(old) == corev1.ConditionTrue && suspended(next) == corev1.ConditionFalse)
	note("completed-indexes", a.CompletedIndexes != b.CompletedIndexes)
	note("failed-indexes", or(a.FailedIndexes) != or(b.FailedIndexes))
	note("uncounted-cap", len(is.Succeeded)+len(is.Failed) >= w.limits.MaxUncounted && w.World.has(limited))
	note("work-queue", old.Completions == nil && len(is.Succeeded) > len(was.Succeeded) && b.Active > 0)
	note("backoff-limit-never", !old.RestartsInPlace && b.Failed > a.Failed)
	_, waits := next.Condition(v1alpha1.PodsWaitingCondition)
	note("pods-waiting", waits)
	for _, c := range a.Conditions {
		note("condition-fields", c.Type == "example.com/Note")
	}
	for _, uid := range is.Failed {
		r := w.truth.of(uid)
		if slices.Contains(was.Failed, uid) {
			continue
		}
		_, failing := next.Condition(batchv1.JobFailureTarget)
		note("deleted-pods", r.deleted && !r.deletedByUs)
		note("replace-terminating", r.deleted && !r.ended && !old.ReplaceFailedOnly)
		note("replace-failed", r.deleted && r.ended && old.ReplaceFailedOnly)
		note("failing-leftovers", failing && r.deletedByUs)
		note("policy-Count", w.truth.action(r) == batchv1.PodFailurePolicyActionCount)
		note("policy-FailIndex", w.truth.action(r) == batchv1.PodFailurePolicyActionFailIndex)
		note("policy-FailJob", w.truth.action(r) == batchv1.PodFailurePolicyActionFailJob)
		note("policy-conditions", r.evicted && w.plan.evicted != "")
	}
	for _, uid := range was.Failed {
		note("pod-flips-phase", w.truth.of(uid).well)
	}
	w.noteEnd(old, next)
}

// noteEnd records how a Job ends.
func (w *tenant) noteEnd(old, next events.Job) {
	if next.Finished() && !old.Finished() {
		_, failed := next.Condition(batchv1.JobFailed)
		if failed {
			w.row("failure-order")
		} else {
			w.row("success-order")
		}
		if !failed && next.Suspended {
			w.row("suspend-completes")
		}
	}
	if c, ok := next.Condition(batchv1.JobFailureTarget); ok && !has(old, batchv1.JobFailureTarget) {
		w.row("reason-" + c.Reason)
		switch c.Reason {
		case batchv1.JobReasonBackoffLimitExceeded:
			if next.RestartsInPlace {
				w.row("backoff-limit-on-failure")
			}
		case batchv1.JobReasonDeadlineExceeded:
			w.row("active-deadline")
		case batchv1.JobReasonMaxFailedIndexesExceeded:
			w.row("max-failed-indexes")
		}
	}
	if c, ok := next.Condition(batchv1.JobSuccessCriteriaMet); ok && c.Reason == batchv1.JobReasonSuccessPolicy && !has(old, c.Type) {
		w.row("success-policy")
	}
}

func has(j events.Job, t batchv1.JobConditionType) bool {
	_, ok := j.Condition(t)
	return ok
}

// noteCreate records the rows that show in a new Pod.
func (w *tenant) noteCreate(j events.Job, p events.Pod) {
	w.row("parallelism")
	if j.Indexed {
		w.row("index-assignment")
	}
	if j.Selector != nil {
		w.row("manual-selector")
	}
	if j.Options.Parameters != "" {
		w.row("parameters")
		if w.Steps["bad parameters"] > 0 {
			w.row("parameters-bad")
		}
	}
	if p.IndexFailures+p.IndexIgnoredFailures > 0 {
		w.row("backoff-limit-per-index")
		w.row("backoff-per-index")
	}
	if j.Backoff.Failures > 0 && j.BackoffLimitPerIndex == nil {
		w.row("backoff-global")
		if j.Options.BackoffSeconds != nil {
			w.row("backoff-seconds")
		}
	}
	if w.Steps["quota"] > 0 && !w.quota {
		w.row("slow-start")
	}
	if w.truth.losses > 0 {
		w.row("memory-lost")
	}
}

// noteAct records the rows that show in an effect before it is carried out.
func (w *tenant) noteAct(uid types.UID, e effect.Effect) {
	j := w.api.jobs[uid]
	switch e := e.(type) {
	case effect.WriteJobStatus:
		if j != nil && j.Version != e.Version {
			w.row("status-conflict")
		}
		for _, r := range e.Reports {
			if r.Reason == "Completed" {
				w.row("events")
			}
		}
	case effect.CreatePod:
		if w.api.pods[e.Name] != nil {
			w.row("stale-caches")
		}
	case effect.RemoveFinalizer:
		p := w.api.pods[e.Name]
		if p == nil || p.UID != e.UID || !p.Held {
			return
		}
		if j != nil && j.Finished() {
			w.row("finished-jobs")
		}
		if w.truth.ignored(w.truth.of(p.UID)) {
			w.row("policy-Ignore")
		}
	case effect.DeletePod:
		if p := w.api.pods[e.Name]; p != nil && e.RemoveFinalizer && j != nil && p.Version == e.Version {
			w.noteSurplus(j, p)
		}
	}
}

// noteSurplus records why a Pod is surplus.
func (w *tenant) noteSurplus(j *events.Job, p *pod) {
	if j.Finished() && p.Held {
		w.row("finished-jobs")
	}
	if j.Suspended || j.Finished() || has(*j, batchv1.JobSuccessCriteriaMet) {
		return
	}
	if !j.Indexed {
		w.row("scale-down")
		return
	}
	for _, other := range w.api.pods {
		if other != p && other.owner == p.owner && other.Index == p.Index && !other.Terminal() && !other.Deleting {
			w.row("index-duplicates")
			return
		}
	}
	if p.Index < 0 || p.Index >= int(*j.Completions) || completed(j.Status).Has(p.Index) {
		w.row("index-duplicates")
		return
	}
	w.row("scale-down")
}

// noteFacts records the rows that show in the answer to an effect.
func (w *tenant) noteFacts(facts []events.Event) {
	for _, f := range facts {
		switch f := f.(type) {
		case events.EffectRefused:
			if f.Effect == (effect.ReadParameters{}).Kind() {
				w.Steps["bad parameters"]++
			}
		case events.ParametersObserved:
			w.truth.values = max(w.truth.values, f.Count)
			if f.Count < plenty {
				w.Steps["bad parameters"]++
			}
		}
	}
}
