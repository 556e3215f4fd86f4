package why

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/progress"
)

// Job is what the caller has read about a Job.
type Job struct {
	Object *batchv1.Job
	// Pods are the Job's, or as many as were read: MorePods reports whether there are more.
	Pods     []corev1.Pod
	MorePods bool
	// Events are the Warnings about the Job and about its Pods, in any order.
	Events []corev1.Event
	// Unread are what could not be read, with the reason: an Answer without it may lack the cause.
	Unread []finding.Finding
	// PodsUnread reports whether the Pods are part of that.
	PodsUnread bool
	// Now is the time of the reads.
	Now time.Time
}

// Explain returns why the Job waits, fails, or how it ended.
func (j Job) Explain() Answer {
	o := j.Object
	x := &jobCauses{Job: j, findings: findings{kind: "job", namespace: o.Namespace, name: o.Name, now: j.Now}}
	x.leaving()
	switch end := x.condition(batchv1.JobComplete, batchv1.JobFailed); {
	case end != nil:
		x.ended(end)
	case o.DeletionTimestamp == nil:
		x.unfinished()
	}
	x.add(j.Unread...)
	x.belongs()
	state, _ := progress.State(o)
	if o.DeletionTimestamp != nil {
		state = "Deleting"
	}
	return Answer{Kind: "Job", Namespace: o.Namespace, Name: o.Name, UID: o.UID, State: state, Progress: x.progress(), Findings: x.sorted()}
}

// jobCauses are the causes of a Job.
type jobCauses struct {
	Job
	findings
	// delayed is until when the Job waited after its failures, if that is over.
	delayed time.Time
}

// unfinished reports what a Job that has not ended waits for.
func (x *jobCauses) unfinished() {
	o := x.Object
	suspended := ptr.Deref(o.Spec.Suspend, false)
	if suspended {
		x.suspended(o.ObjectMeta, "its Pods are deleted, and none is created until it is resumed")
	}
	x.untouched()
	x.unsupported()
	x.refused()
	x.noParallelism()
	x.ending()
	x.waitingPods()
	x.uncounted()
	if !suspended {
		x.failingRequests()
		x.backingOff()
		x.idle()
	}
	x.settings()
	if !x.holdUp() {
		x.running()
	}
	x.deadline()
}

// condition returns the first of the conditions that is True, or nil.
func (x *jobCauses) condition(types ...batchv1.JobConditionType) *batchv1.JobCondition {
	for _, t := range types {
		for i := range x.Object.Status.Conditions {
			if c := &x.Object.Status.Conditions[i]; c.Type == t && c.Status == corev1.ConditionTrue {
				return c
			}
		}
	}
	return nil
}

func (x *jobCauses) progress() string {
	o := x.Object
	succeeded := fmt.Sprint(o.Status.Succeeded)
	if n := o.Spec.Completions; n != nil {
		succeeded += fmt.Sprintf(" of %d", *n)
	}
	return fmt.Sprintf("%s succeeded, %d active, %d failed, created %s ago", succeeded, o.Status.Active, o.Status.Failed, x.ago(o.CreationTimestamp.Time))
}

func (x *jobCauses) unsupported() {
	if c := x.condition(v1alpha1.UnsupportedCondition); c != nil {
		x.fail("unsupported", "correct or remove the annotation that it names; a field of the spec cannot be changed: delete the Job, and create it without that field",
			"it gets no Pods: %s", clean(c.Message))
	}
}

// noParallelism reports a Job that asks for no Pods.
func (x *jobCauses) noParallelism() {
	if ptr.Deref(x.Object.Spec.Parallelism, 1) == 0 {
		x.fail("parallelism", fmt.Sprintf(`let Pods run with: kubectl patch %s --type=merge -p '{"spec":{"parallelism":1}}'`, x.object()),
			"spec.parallelism is 0, so no Pod is created")
	}
}

// until finds the time in the message of the condition BackingOff.
var until = regexp.MustCompile(`(?:created|tried again) at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)`)

// pastDelay is how long after the end of a delay the condition may stay: the status is written together with the next change.
const pastDelay = 5 * time.Second

// backingOff reports the wait after failed Pods.
func (x *jobCauses) backingOff() {
	c := x.condition(v1alpha1.BackingOffCondition)
	if c == nil {
		return
	}
	message, left := clean(c.Message), ""
	if at := until.FindStringSubmatch(c.Message); at != nil {
		if ends, err := time.Parse(time.RFC3339, at[1]); err == nil {
			if x.now.Sub(ends) > pastDelay {
				x.delayed = ends
				return // the next Pod exists, or something else keeps it from being created
			}
			left = fmt.Sprintf(" (in %s)", span(ends.Sub(x.now)))
			message = strings.Replace(message, at[1], at[1]+left, 1)
		}
	}
	x.warn("backoff", fmt.Sprintf("look at what failed with: kubectl jobstream logs %s --failed -n %s; the annotation %s sets the delay after the first failure",
		x.name, x.namespace, v1alpha1.BackoffSecondsAnnotation), "it waits after a failure: %s%s", message, x.neverStarted())
}

// settings reports annotations and selectors that have no effect, and conditions of other controllers.
func (x *jobCauses) settings() {
	if c := x.condition(v1alpha1.IgnoredCondition); c != nil {
		x.warn("annotation", "correct it: kubectl edit "+x.object(), "an annotation is ignored: %s", clean(c.Message))
	}
	if c := x.condition(v1alpha1.NotAdoptingCondition); c != nil {
		x.warn("selector", "leave out manualSelector where it is not needed, or wait until other such Jobs of the namespace have ended", "it adopts no Pods: %s", clean(c.Message))
	}
	for _, c := range x.Object.Status.Conditions {
		if c.Status == corev1.ConditionTrue && !known[c.Type] {
			x.good("condition "+clean(string(c.Type)), "%s", progress.Why(c.Reason, c.Message))
		}
	}
}

// known are the conditions that other functions report, or that show progress only.
var known = map[batchv1.JobConditionType]bool{batchv1.JobSuspended: true, batchv1.JobComplete: true, batchv1.JobFailed: true,
	batchv1.JobFailureTarget: true, batchv1.JobSuccessCriteriaMet: true, v1alpha1.RefusedCondition: true, v1alpha1.BackingOffCondition: true, v1alpha1.PodsWaitingCondition: true,
	v1alpha1.IgnoredCondition: true, v1alpha1.UnsupportedCondition: true, v1alpha1.NotAdoptingCondition: true}

// running reports a Job that nothing holds up.
func (x *jobCauses) running() {
	o := x.Object
	active, limit := o.Status.Active, ptr.Deref(o.Spec.Parallelism, 1)
	if o.Spec.Completions != nil && active >= limit && *o.Spec.Completions-o.Status.Succeeded > limit {
		x.good("parallelism", "%s run, which is as many as spec.parallelism allows; the others follow as these end", several(int(active), "Pod"))
		x.all[len(x.all)-1].Advice = fmt.Sprintf(`more run at once with: kubectl patch %s --type=merge -p '{"spec":{"parallelism":%d}}'`, x.object(), 2*max(1, limit))
		return
	}
	x.good("running", "nothing holds it up: %s, %d of them ready", several(int(active), "Pod")+" active", ptr.Deref(o.Status.Ready, 0))
}

// deadline reports when activeDeadlineSeconds ends the Job.
func (x *jobCauses) deadline() {
	o := x.Object
	if o.Spec.ActiveDeadlineSeconds == nil || o.Status.StartTime == nil || ptr.Deref(o.Spec.Suspend, false) || x.decided() != nil {
		return
	}
	at := o.Status.StartTime.Add(time.Duration(*o.Spec.ActiveDeadlineSeconds) * time.Second)
	if left := at.Sub(x.now); left > 0 {
		x.good("deadline", "activeDeadlineSeconds ends it at %s (in %s)", at.UTC().Format(time.RFC3339), span(left))
	}
}
