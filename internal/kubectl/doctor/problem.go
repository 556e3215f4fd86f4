package doctor

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
)

const (
	// mostProblems is the largest number of problems printed. If there are more, they usually share a cause with these.
	mostProblems = 20
	// longestFound is the number of characters of a message that is printed; kubectl describe has the rest.
	longestFound = 300
	// interrupted is the age from which a Job suspended by "kubectl jobstream run" is no longer one that it is just creating.
	interrupted = time.Minute
)

// problem is a condition that is True, with the advice to the user. NAME and NAMESPACE in the advice stand for the object's.
type problem struct {
	condition string
	level     finding.Level
	advice    string
}

var jobProblems = []problem{
	{v1alpha1.UnsupportedCondition, finding.Fail, "delete it, and create it without that: kubectl delete job NAME -n NAMESPACE; docs/jobs.md lists what is supported"},
	{v1alpha1.RefusedCondition, finding.Fail, "correct what rejects its Pods, such as a quota, a webhook, the Pod template or its ConfigMap; the Job then goes on by itself"},
	{v1alpha1.IgnoredCondition, finding.Warn, "correct the annotation: kubectl edit job NAME -n NAMESPACE; docs/jobs.md lists the valid values"},
	{v1alpha1.NotAdoptingCondition, finding.Warn, "leave out manualSelector where it is not needed, or wait until other such Jobs of the namespace have ended"},
}

var scheduleProblems = []problem{
	{v1alpha1.StalledCondition, finding.Fail, "correct its spec: kubectl edit scheduledjob NAME -n NAMESPACE"},
	{v1alpha1.BlockedCondition, finding.Fail, "correct what rejects its Job, or delete the object that has the Job's name; the reconciler retries by itself"},
}

// Problems returns a finding for each problem of a Job or ScheduledJob, or one finding that there are none.
func (s Observation) Problems() (all []finding.Finding) {
	left := 0
	add := func(f finding.Finding) {
		if len(all) == mostProblems {
			left++
			return
		}
		all = append(all, f)
	}
	for i := range s.ScheduledJobs {
		s.scheduleProblems(&s.ScheduledJobs[i], add)
	}
	managed := 0
	for i := range s.Jobs {
		if j := &s.Jobs[i]; IsManaged(j) {
			managed++
			s.jobProblems(j, add)
		}
	}
	const check = "jobs and scheduledjobs"
	looked := fmt.Sprintf("%d Jobs of jobstream and %d ScheduledJobs in %s were checked", managed, len(s.ScheduledJobs), s.Where)
	if s.More {
		looked += "; there are more"
	}
	switch {
	case left > 0:
		all = append(all, finding.Worry(check, finding.Warn, "solve the first ones, and run doctor again", "%d more problems are not shown: %s", left, looked))
	case len(all) == 0:
		all = append(all, finding.Good(check, "no problem found: %s", looked))
	}
	return all
}

func (s Observation) jobProblems(j *batchv1.Job, add func(finding.Finding)) {
	if j.DeletionTimestamp != nil || condition(j, batchv1.JobFailed, batchv1.JobComplete) != nil {
		return
	}
	for _, t := range jobProblems {
		if c := condition(j, batchv1.JobConditionType(t.condition)); c != nil {
			add(found(s.job(j), t, j.Name, j.Namespace, c.Reason, c.Message))
		}
	}
	if !ptr.Deref(j.Spec.Suspend, false) {
		return
	}
	switch by := j.Labels[v1alpha1.SuspendedByLabel]; {
	case by == v1alpha1.SuspendedByRun && s.Now.Sub(j.CreationTimestamp.Time) > interrupted:
		add(finding.Worry(s.job(j), finding.Warn, fmt.Sprintf("delete it with: kubectl delete job %s -n %s, and run it again", j.Name, j.Namespace),
			"is suspended for ever: the command that created it was interrupted"))
	case by != "" && by != v1alpha1.SuspendedByRun:
		add(SuspendedBy(s.job(j), by, "job", j.Name, j.Namespace))
	}
}

func (s Observation) scheduleProblems(o *v1alpha1.ScheduledJob, add func(finding.Finding)) {
	if o.DeletionTimestamp != nil {
		return
	}
	for _, t := range scheduleProblems {
		if c := meta.FindStatusCondition(o.Status.Conditions, t.condition); c != nil && c.Status == "True" {
			add(found(s.scheduled(o), t, o.Name, o.Namespace, c.Reason, c.Message))
		}
	}
	if by := o.Labels[v1alpha1.SuspendedByLabel]; by != "" && ptr.Deref(o.Spec.Suspend, false) {
		add(SuspendedBy(s.scheduled(o), by, "scheduledjob", o.Name, o.Namespace))
	}
}

// SuspendedBy returns a finding about an object that was suspended by jobstream rather than by its user. by is the value of the
// label, kind is that of the object as kubectl takes it.
func SuspendedBy(check, by, kind, name, namespace string) finding.Finding {
	resume := fmt.Sprintf("kubectl jobstream resume %s/%s -n %s --force", kind, name, namespace)
	switch by {
	case v1alpha1.SuspendedByDrain:
		return finding.Worry(check, finding.Warn, "if jobstream is installed again: "+resume, "was suspended when jobstream was being removed from this cluster")
	case v1alpha1.SuspendedByConvert:
		return finding.Worry(check, finding.Warn, fmt.Sprintf("if the CronJob is to stay: kubectl delete %s %s -n %s", kind, name, namespace), "was suspended because a CronJob has taken over")
	}
	return finding.Worry(check, finding.Warn, "ask them, or: "+resume, "was suspended by %q (label %s)", by, v1alpha1.SuspendedByLabel)
}

func found(check string, t problem, name, namespace, reason, message string) finding.Finding {
	text := []rune(fmt.Sprintf("%s: %s: %s", t.condition, reason, message))
	if len(text) > longestFound {
		text = append(text[:longestFound-1], '…')
	}
	return finding.Worry(check, t.level, strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(t.advice), "%s", string(text))
}
