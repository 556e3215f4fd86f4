package why

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/kubectl/doctor"
	"github.com/jobstream/jobstream/internal/progress"
)

// Schedule is what the caller has read about a ScheduledJob.
type Schedule struct {
	Object *v1alpha1.ScheduledJob
	// Active are its active Jobs, or the oldest of them.
	Active []Job
	// Last is the Job of status.lastRun; nil if it is gone.
	Last *batchv1.Job
	// Events are the Warnings about the ScheduledJob, in any order.
	Events []corev1.Event
	// Unread are what could not be read, with the reason.
	Unread []finding.Finding
	// Now is the time of the reads.
	Now time.Time
	// Zones finds time zones.
	Zones scheduledjob.Zones
}

// Explain returns why the ScheduledJob creates no Jobs, or why it created none for its latest nominal times, and how its last Job
// ended.
func (s Schedule) Explain() Answer {
	o := s.Object
	x := &scheduleCauses{Schedule: s, findings: findings{kind: "scheduledjob", namespace: o.Namespace, name: o.Name, now: s.Now}}
	if o.DeletionTimestamp != nil {
		x.heldBy(o.ObjectMeta, "scheduledjob."+v1alpha1.Group)
		if !x.holdUp() {
			x.warn("deletion", "wait until its Jobs and their Pods are gone", "its deletion began %s ago", x.ago(o.DeletionTimestamp.Time))
		}
	} else {
		x.stalled()
		if ptr.Deref(o.Spec.Suspend, false) {
			x.suspended(o.ObjectMeta, "no Job is created, and the times that pass meanwhile are skipped and never caught up on")
		}
		x.paused()
		x.blocked()
		x.untouched()
		x.active()
		x.verdicts()
		x.lastRun()
		x.conditions()
		x.next()
		if len(x.all) == 0 {
			x.good("ready", "nothing holds it up")
		}
	}
	x.add(s.Unread...)
	return Answer{Kind: v1alpha1.ScheduledJobKind, Namespace: o.Namespace, Name: o.Name, UID: o.UID, State: x.state(), Progress: x.progress(), Findings: x.sorted()}
}

// scheduleCauses are the causes of a ScheduledJob.
type scheduleCauses struct {
	Schedule
	findings
}

func (x *scheduleCauses) condition(t string) *metav1.Condition {
	if c := meta.FindStatusCondition(x.Object.Status.Conditions, t); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// state returns what the ScheduledJob does, in one word.
func (x *scheduleCauses) state() string {
	if x.Object.DeletionTimestamp != nil {
		return "Deleting"
	}
	for _, t := range []string{v1alpha1.StalledCondition, v1alpha1.FinishedCondition} {
		if x.condition(t) != nil {
			return t
		}
	}
	switch {
	case ptr.Deref(x.Object.Spec.Suspend, false), x.condition(v1alpha1.SuspendedCondition) != nil:
		return v1alpha1.SuspendedCondition
	case x.condition(v1alpha1.BlockedCondition) != nil:
		return v1alpha1.BlockedCondition
	case x.condition(v1alpha1.ReadyCondition) != nil:
		return v1alpha1.ReadyCondition
	}
	return "Waiting"
}

func (x *scheduleCauses) progress() string {
	st := x.Object.Status
	return fmt.Sprintf("%d active, %d complete, %d failed or missed, created %s ago", len(st.Active), st.Successful, st.Failed, x.ago(x.Object.CreationTimestamp.Time))
}

const editSpec = "correct its spec with: kubectl edit "

func (x *scheduleCauses) stalled() {
	if c := x.condition(v1alpha1.StalledCondition); c != nil {
		x.fail("stalled", editSpec+x.object(), "no Job is created until its spec is changed: %s", progress.Why(c.Reason, c.Message))
	}
}

// paused reports a ScheduledJob that the reconciler has suspended by itself, as pauseAfterFailures demands.
func (x *scheduleCauses) paused() {
	c := x.condition(v1alpha1.SuspendedCondition)
	if c == nil || c.Reason == v1alpha1.ReasonSuspended || ptr.Deref(x.Object.Spec.Suspend, false) {
		return
	}
	x.fail("paused", fmt.Sprintf("correct the cause, then let it go on with: kubectl jobstream resume scheduledjob/%s -n %s", x.name, x.namespace),
		"no Job is created for %s: %s", x.ago(c.LastTransitionTime.Time), progress.Why(c.Reason, c.Message))
}

// untouched reports a ScheduledJob that the reconciler has not processed, or whose time has passed without a verdict.
func (x *scheduleCauses) untouched() {
	since := doctor.ScheduleWaits(x.Object)
	if since.IsZero() || x.condition(v1alpha1.StalledCondition) != nil || x.has("api server") {
		return
	}
	fresh, waited := x.Object.Status.ObservedGeneration == 0, x.now.Sub(since)
	switch {
	case fresh && waited > doctor.Timeout:
		x.fail("controller", doctor.FindPrograms, "jobstream has not touched it since its creation %s ago: it does not run, or does not serve this namespace", x.ago(since))
	case fresh:
		x.warn("new", "ask again in a few seconds", "it was created %s ago, and jobstream has not processed it yet", x.ago(since))
	case waited > doctor.Timeout:
		x.fail("controller", doctor.FindPrograms, "the time %s has passed without a decision, %s ago: jobstream does not run, or does not serve this namespace",
			x.clock(x.Object.Status.NextScheduleTime.Time), x.ago(since))
	}
}

// blocked reports that the API server refuses the Job that is due.
func (x *scheduleCauses) blocked() {
	c := x.condition(v1alpha1.BlockedCondition)
	template := "change jobTemplate with: kubectl edit " + x.object()
	if c == nil {
		if x.due() {
			x.failing(x.Events, string(x.Object.UID), time.Time{}, template)
		}
		return
	}
	x.refuse(c.Reason, "CreateJob: "+c.Message, "for "+x.ago(c.LastTransitionTime.Time), template)
	if d := x.Object.Spec.StartingDeadlineSeconds; d != nil {
		x.all[len(x.all)-1].Found += fmt.Sprintf("; the creation is repeated until startingDeadlineSeconds (%d) have passed or the next time comes", *d)
	}
}

// active reports Jobs that run: those that hold up a later one, and those that wait for something themselves.
func (x *scheduleCauses) active() {
	policy, due := x.Object.Spec.ConcurrencyPolicy, x.due()
	for _, j := range x.Active {
		a := j.Explain()
		first := a.Findings[0]
		where := fmt.Sprintf("the Job %s, created %s ago", a.Name, x.ago(j.Object.CreationTimestamp.Time))
		itself := ""
		if first.Level != finding.OK {
			itself = fmt.Sprintf("; that Job itself: %s: %s", first.Check, first.Found)
		}
		advice := fmt.Sprintf("see what that Job waits for with: kubectl jobstream why job/%s -n %s; kubectl jobstream stop %s -n %s ends it", a.Name, x.namespace, a.Name, x.namespace)
		if first.Level == finding.Fail && first.Advice != "" {
			advice = first.Advice
		}
		switch {
		case policy == v1alpha1.ReplaceConcurrent && due:
			x.fail("replace", advice, "%s, is being replaced: the next one is created when it and its Pods are gone%s", where, itself)
		case doctor.WaitsForActive(x.Object) && due:
			x.add(finding.Worry("overlap", max(finding.Warn, first.Level), advice, "%s, is still active, and concurrencyPolicy is %s: the time that has come waits for its end%s", where, policy, itself))
		case policy == v1alpha1.ForbidConcurrent && x.skipped():
			x.fail("overlap", advice, "%s, is still active, and concurrencyPolicy is Forbid: times that come meanwhile are skipped%s", where, itself)
		case first.Level == finding.Fail:
			x.fail("active job", advice, "%s, does not run%s", where, itself)
		case policy == v1alpha1.ForbidConcurrent:
			x.good("running", "%s, is active; concurrencyPolicy is Forbid, so a time that comes before its end is skipped", where)
		default:
			x.good("running", "%s, is active", where)
		}
	}
	if more := len(x.Object.Status.Active) - len(x.Active); more > 0 && len(x.Active) > 0 {
		x.good("running", "%s more active", are(more, "Job"))
	}
}

// due reports whether a nominal time has come that has no verdict.
func (x *scheduleCauses) due() bool {
	next := x.Object.Status.NextScheduleTime
	return next != nil && !x.now.Before(next.Add(scheduledjob.Delay(events.ProjectScheduledJob(x.Object))))
}

// conditions reports conditions that this version does not know.
func (x *scheduleCauses) conditions() {
	if c := x.condition(v1alpha1.FinishedCondition); c != nil {
		x.good("finished", "its one time is decided: %s", progress.Why(c.Reason, c.Message))
	}
	for _, c := range x.Object.Status.Conditions {
		switch c.Type {
		case v1alpha1.ReadyCondition, v1alpha1.StalledCondition, v1alpha1.SuspendedCondition, v1alpha1.BlockedCondition, v1alpha1.FinishedCondition:
		default:
			if c.Status == metav1.ConditionTrue {
				x.warn("condition "+clean(c.Type), "", "%s", progress.Why(c.Reason, c.Message))
			}
		}
	}
}

// next reports when the next Job is created.
func (x *scheduleCauses) next() {
	st := x.Object.Status
	switch {
	case st.NextScheduleTime == nil && x.expectsNext():
		x.fail("no next time", editSpec+x.object(), "its schedule has no time that is still to come")
	case st.NextScheduleTime != nil && x.due() && !x.holdUp():
		x.warn("due", "ask again in a few seconds", "the time %s has come, and is being decided", x.clock(st.NextScheduleTime.Time))
	case st.NextScheduleTime != nil && !x.due():
		delay := scheduledjob.Delay(events.ProjectScheduledJob(x.Object))
		late := ""
		if delay > 0 {
			late = fmt.Sprintf(", %v later by jitterSeconds", delay)
		}
		x.good("next", "the next Job is created at %s (in %s)%s", x.clock(st.NextScheduleTime.Time), span(st.NextScheduleTime.Add(delay).Sub(x.now)), late)
	}
}

// expectsNext reports whether nothing that is known explains why there is no next time.
func (x *scheduleCauses) expectsNext() bool {
	for _, t := range []string{v1alpha1.StalledCondition, v1alpha1.SuspendedCondition, v1alpha1.FinishedCondition} {
		if x.condition(t) != nil {
			return false
		}
	}
	return !ptr.Deref(x.Object.Spec.Suspend, false) && x.Object.Status.ObservedGeneration > 0 && x.Object.Spec.RunAt == nil
}

// clock shows a time in the schedule's own zone.
func (x *scheduleCauses) clock(at time.Time) string {
	if zone, err := x.Zones(ptr.Deref(x.Object.Spec.TimeZone, "")); err == nil {
		at = at.In(zone)
	}
	return at.Format(time.RFC3339)
}
