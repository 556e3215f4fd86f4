package why

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/kubectl/doctor"
)

// claimed reports whether the Job's spec hands it to jobstream.
func (x *jobCauses) claimed() bool { return doctor.IsManaged(x.Object) }

// hand is the advice on a Job that belongs to another controller.
const hand = "create it again with spec.managedBy: " + v1alpha1.DefaultManagedBy + " if jobstream is to run it; the field cannot be changed"

// untouched reports a Job that its controller has not processed, or a stopped one whose Pods run on. No API shows whether a
// controller runs: the evidence is what it has not done.
func (x *jobCauses) untouched() {
	o := x.Object
	since := doctor.JobWaits(o)
	if since.IsZero() {
		return
	}
	by, waited := ptr.Deref(o.Spec.ManagedBy, ""), x.now.Sub(since)
	fresh := o.Status.StartTime == nil
	switch {
	case fresh && by != "" && !x.claimed():
		x.fail("managed by", "look for the controller that calls itself so; or "+hand, "spec.managedBy is %q: neither jobstream nor the built-in controller runs it, and that controller has not touched it since its creation %s ago",
			clean(by), x.ago(since))
	case fresh && waited <= doctor.Timeout:
		x.warn("new", "ask again in a few seconds", "it was created %s ago, and its controller has not processed it yet", x.ago(since))
	case waited <= doctor.Timeout:
	case !fresh:
		x.fail("controller", x.findController(), "its end was decided %s ago, and its Pods still run: the controller does not do its work", x.ago(since))
	case by == "":
		x.fail("managed by", "look whether kube-controller-manager runs; or "+hand, "spec.managedBy is not set, so it belongs to the built-in Job controller, which has not touched it since its creation %s ago", x.ago(since))
	default:
		x.fail("controller", x.findController(), "jobstream has not touched it since its creation %s ago: it does not run, or does not serve this namespace", x.ago(since))
	}
}

func (x *jobCauses) findController() string {
	if x.claimed() {
		return doctor.FindPrograms
	}
	return "look whether kube-controller-manager runs"
}

// belongs notes that another controller runs the Job, if that is not the cause.
func (x *jobCauses) belongs() {
	if x.claimed() || x.has("managed by") {
		return
	}
	if by := ptr.Deref(x.Object.Spec.ManagedBy, ""); by != "" {
		x.good("managed by", "the controller %q runs it, not jobstream", clean(by))
		return
	}
	x.good("managed by", "spec.managedBy is not set: the built-in controller runs it, or jobstream with --claim-unmanaged")
}

// uncounted reports Pods that have ended and keep jobstream's finalizer: their controller does not count them.
func (x *jobCauses) uncounted() {
	if x.condition(v1alpha1.RefusedCondition) != nil || x.has("controller") {
		return
	}
	n, oldest := 0, x.now
	for i := range x.Pods {
		p := &x.Pods[i]
		if !ended(p) || !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
			continue
		}
		if at := finished(p); !at.IsZero() && x.now.Sub(at) > doctor.Timeout {
			n++
			oldest = earlier(oldest, at)
		}
	}
	if n > 0 {
		x.fail("controller", x.findController(), "%s not counted, the first for %s: the controller does not do its work", are(n, "ended Pod"), x.ago(oldest))
	}
}

// idle reports a Job that wants Pods and has none, without a reason that the API server shows.
func (x *jobCauses) idle() {
	o := x.Object
	if x.PodsUnread || x.decided() != nil || x.holdUp() || ptr.Deref(o.Spec.Parallelism, 1) == 0 {
		return
	}
	last := later(o.CreationTimestamp.Time, x.delayed)
	if o.Status.StartTime != nil {
		last = later(last, o.Status.StartTime.Time)
	}
	if e := events.FieldManager(o.ManagedFields, "f:spec", "f:suspend"); e != nil && e.Time != nil {
		last = later(last, e.Time.Time) // it may have been resumed then
	}
	for i := range x.Pods {
		if p := &x.Pods[i]; !ended(p) {
			return
		}
		last = later(last, finished(&x.Pods[i]))
	}
	for _, c := range o.Status.Conditions {
		last = later(last, c.LastTransitionTime.Time)
	}
	if waited := x.now.Sub(last); waited > doctor.Timeout && !x.MorePods {
		x.fail("controller", x.findController(), "it has had no Pod for %s, and nothing shows a reason: the controller does not do its work", span(waited))
	}
}

// decided returns the condition that decides the Job's end before its Pods are gone, or nil.
func (x *jobCauses) decided() *batchv1.JobCondition {
	return x.condition(batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet)
}

// ended reports whether the Pod has ended.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// finished returns when the last container of an ended Pod ended; zero if that is unknown.
func finished(p *corev1.Pod) (at time.Time) {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil {
			at = later(at, t.FinishedAt.Time)
		}
	}
	return at
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
