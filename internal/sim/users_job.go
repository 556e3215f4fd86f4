package sim

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
)

// unfinished returns the Job, nil once it has finished.
func (w *tenant) unfinished() *events.Job {
	if j := w.api.jobs[w.uid]; j != nil && !j.Finished() {
		return j
	}
	return nil
}

// edit changes the Job's spec.
func (w *tenant) edit(change func(*events.Job)) {
	w.api.UpdateJob(w.uid, func(j *events.Job) {
		change(j)
		j.Generation++
	})
}

func (w *tenant) scale() bool {
	if w.has(elastic) {
		return w.stretch()
	}
	if w.unfinished() == nil {
		return false
	}
	to := int32(w.rand.IntN(6))
	w.trace("user     scales to parallelism %d", to)
	w.truth.scaled(to)
	w.edit(func(j *events.Job) { j.Parallelism = to })
	return true
}

// stretch changes completions and parallelism together, down to what the rest of the spec allows.
func (w *tenant) stretch() bool {
	j := w.unfinished()
	if j == nil {
		return false
	}
	least := or(j.MaxFailedIndexes)
	if j.SuccessPolicy != nil {
		for _, rule := range j.SuccessPolicy.Rules {
			least = max(least, or(rule.SucceededCount))
			named, _ := intervals.Parse(or(rule.SucceededIndexes))
			for i := range 64 {
				if named.Has(i) {
					least = max(least, int32(i+1))
				}
			}
		}
	}
	to := least + w.rand.Int32N(max(1, 9-least))
	w.trace("user     scales to parallelism and completions %d", to)
	w.truth.scaled(to)
	w.truth.stretched(to)
	w.row("elastic-indexed")
	w.edit(func(j *events.Job) { j.Parallelism, j.Completions = to, &to })
	return true
}

func (w *tenant) suspend() bool {
	j := w.unfinished()
	if j == nil {
		return false
	}
	w.setSuspended(!j.Suspended)
	return true
}

func (w *tenant) setSuspended(to bool) {
	w.trace("user     suspends the Job: %v", to)
	w.truth.paused()
	w.edit(func(j *events.Job) { j.Suspended = to })
}

func (w *tenant) editDeadline() bool {
	if w.unfinished() == nil {
		return false
	}
	var to *int64
	if w.rand.IntN(3) > 0 {
		to = new(int64(w.rand.IntN(200)))
	}
	w.trace("user     sets activeDeadlineSeconds to %d", or(to))
	w.edit(func(j *events.Job) { j.ActiveDeadlineSeconds = to })
	return true
}

// editLimit changes the limit of failed Pods. Pods that failed before there was a limit are deleted after the next list.
func (w *tenant) editLimit() bool {
	if w.api.jobs[w.uid] == nil {
		return false
	}
	var to *int
	if w.rand.IntN(4) > 0 {
		to = new(w.rand.IntN(3))
	}
	w.trace("user     sets the limit of failed Pods to %d (none: %v)", or(to), to == nil)
	w.truth.limited(to)
	w.lateLimit = true
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.Options.FailedPodsLimit = to })
	return true
}

// declareFailed declares the Job failed, as another controller that knows more about the Job does.
func (w *tenant) declareFailed() bool {
	j := w.unfinished()
	if j == nil || slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuccessCriteriaMet || c.Type == batchv1.JobFailureTarget
	}) {
		return false
	}
	w.trace("user     declares the Job failed")
	w.addStatus(batchv1.JobFailureTarget, "Operator", "stopped by hand")
	w.row("failure-declared")
	return true
}

func (w *tenant) addCondition() bool {
	if w.api.jobs[w.uid] == nil {
		return false
	}
	w.trace("user     adds a condition of an unknown type")
	w.addStatus(batchv1.JobConditionType("example.com/Note"), "Remark", w.now.String())
	return true
}

func (w *tenant) addStatus(t batchv1.JobConditionType, reason, message string) {
	at := metav1.Time{Time: w.now.Truncate(time.Second)}
	w.api.UpdateJob(w.uid, func(j *events.Job) {
		j.Status = *j.Status.DeepCopy()
		j.Status.Conditions = append(slices.DeleteFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == t }),
			batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: at, LastTransitionTime: at})
	})
}

// editValues changes a ConfigMap of per-completion values: it is missing, mutable, too short, or valid.
func (w *tenant) editValues() bool {
	name := parametersNames[w.rand.IntN(len(parametersNames))]
	switch w.rand.IntN(5) {
	case 0:
		w.trace("user     deletes the ConfigMap %s", name)
		w.api.SetValues(name, nil)
	case 1:
		w.trace("user     creates a mutable ConfigMap %s", name)
		w.api.SetValues(name, &Values{Count: plenty, Mutable: true})
	case 2:
		n := w.rand.IntN(4)
		w.trace("user     creates the ConfigMap %s of %d values", name, n)
		w.api.SetValues(name, &Values{Count: n})
	default:
		w.trace("user     creates the ConfigMap %s of %d values", name, plenty)
		w.api.SetValues(name, &Values{Count: plenty})
	}
	return true
}

// renameValues makes the Job take its values from another ConfigMap.
func (w *tenant) renameValues() bool {
	if j := w.unfinished(); j == nil || j.Options.Parameters == "" {
		return false
	}
	name := parametersNames[w.rand.IntN(len(parametersNames))]
	w.trace("user     names the ConfigMap %s", name)
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.Options.Parameters = name })
	return true
}

// plenty is more values than any Job here has completions.
const plenty = 64

func (w *tenant) touch() bool {
	if w.api.jobs[w.uid] == nil {
		return false
	}
	w.trace("user     touches the Job")
	w.api.UpdateJob(w.uid, func(*events.Job) {})
	return true
}

func (w *tenant) deleteJob() bool {
	if w.api.jobs[w.uid] == nil || w.rand.IntN(6) > 0 || w.parent != nil && (!w.parent.exists(w) || !w.parent.api.Known(w.plan.job.Name)) {
		return false
	}
	w.trace("user     deletes the Job")
	w.row("deleted-background")
	w.api.DeleteJob(w.uid)
	return true
}

// leaveJob deletes the Job in one of the ways that take time, or recreates it under the same name.
func (w *tenant) leaveJob() bool {
	j := w.api.jobs[w.uid]
	if j == nil || j.Deleting || w.rand.IntN(2) > 0 {
		return false
	}
	switch w.rand.IntN(3) {
	case 0:
		w.trace("user     deletes the Job in the foreground")
		w.row("deleted-foreground")
		w.api.LeaveJob(w.uid, metav1.DeletePropagationForeground)
	case 1:
		w.trace("user     deletes the Job and orphans its Pods")
		w.row("deleted-orphan")
		w.truth.guests += len(w.api.pods)
		w.api.LeaveJob(w.uid, metav1.DeletePropagationOrphan)
	default:
		w.trace("user     deletes the Job and recreates it")
		w.row("recreated")
		w.api.DeleteJob(w.uid)
		w.truth.renewed()
		w.uid = w.api.CreateJob(w.plan.job).UID
	}
	return true
}
