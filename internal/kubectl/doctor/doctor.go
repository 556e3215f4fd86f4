// Package doctor judges what a user can see of jobstream in a cluster: whether it seems to run, what the user may do, and which
// Jobs and ScheduledJobs have problems. It has no I/O and no clock: the caller lists the objects.
//
//	doctor.go    Observation, the listed objects, and whether jobstream seems to run
//	problem.go   Jobs and ScheduledJobs with problems
//	access.go    the permissions that each command needs, and those that the user has
package doctor

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
)

// Timeout is how long an object may wait before the most likely explanation is that jobstream does not run. It usually takes a
// tenth of a second, and some seconds after a crash.
const Timeout = 30 * time.Second

// FindPrograms is the advice if jobstream does not seem to run.
const FindPrograms = "look for its trigger and reconciler with: kubectl get deployments -A -l app.kubernetes.io/part-of=jobstream; if they run, their flag --namespaces may exclude this one"

// Observation is what doctor has listed.
type Observation struct {
	Jobs          []batchv1.Job
	ScheduledJobs []v1alpha1.ScheduledJob
	// Where describes the listed namespaces for the user, such as "the namespace shop".
	Where string
	// AllNamespaces reports whether names need their namespace beside them.
	AllNamespaces bool
	// More reports whether there are more objects than were listed.
	More bool
	// Now is the time of the list.
	Now time.Time
}

// Running judges whether jobstream processes what was listed. No API reports that, and a user may not be allowed to see its Pods.
// The evidence is which objects wait for it, and when it last changed one.
func (s Observation) Running() finding.Finding {
	const check = "jobstream"
	waiting, oldest, longest := 0, "", time.Duration(0)
	note := func(name string, since time.Time) {
		waiting++
		if d := s.Now.Sub(since); d > longest {
			oldest, longest = name, d
		}
	}
	last, when := "", time.Time{}
	trace := func(name string, at *metav1.Time) {
		if at != nil && at.After(when) && !at.After(s.Now) {
			last, when = name, at.Time
		}
	}
	managed := 0
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if !IsManaged(j) {
			continue
		}
		managed++
		if since := JobWaits(j); !since.IsZero() && s.Now.Sub(since) > Timeout {
			note(s.job(j), since)
		}
		trace(s.job(j), j.Status.StartTime)
		if end := condition(j, batchv1.JobFailed, batchv1.JobComplete); end != nil {
			trace(s.job(j), &end.LastTransitionTime)
		}
	}
	for i := range s.ScheduledJobs {
		sj := &s.ScheduledJobs[i]
		managed++
		if since := ScheduleWaits(sj); !since.IsZero() && s.Now.Sub(since) > Timeout {
			note(s.scheduled(sj), since)
		}
		trace(s.scheduled(sj), sj.Status.LastScheduleTime)
	}
	switch {
	case waiting > 0:
		return finding.Worry(check, finding.Fail, FindPrograms, "has not processed %s, which has waited for %v%s", oldest, round(longest), others(waiting-1))
	case last != "":
		return finding.Good(check, "nothing waits for it; its latest trace in %s is on %s, %v ago", s.Where, last, round(s.Now.Sub(when)))
	case managed > 0:
		return finding.Good(check, "nothing waits for it in %s", s.Where)
	}
	return finding.Good(check, "not visible, because %s has nothing for it to do; test it with: kubectl jobstream run hello --image=busybox --wait -- true", s.Where)
}

// JobWaits returns since when the Job has waited for jobstream; zero if it does not.
func JobWaits(j *batchv1.Job) time.Time {
	told := condition(j, batchv1.JobFailureTarget)
	switch {
	case j.DeletionTimestamp != nil || condition(j, batchv1.JobFailed, batchv1.JobComplete) != nil:
	case j.Status.StartTime == nil && len(j.Status.Conditions) == 0:
		return j.CreationTimestamp.Time
	case told != nil && j.Status.Active > 0:
		return told.LastTransitionTime.Time
	}
	return time.Time{}
}

// ScheduleWaits returns since when the ScheduledJob has waited for jobstream; zero if it does not. A Blocked one does not count,
// because the reconciler retries it, nor does one that waits for the end of an active Job.
func ScheduleWaits(s *v1alpha1.ScheduledJob) time.Time {
	next := s.Status.NextScheduleTime
	switch {
	case s.DeletionTimestamp != nil:
	case s.Status.ObservedGeneration == 0:
		return s.CreationTimestamp.Time
	case next == nil || ptr.Deref(s.Spec.Suspend, false) || meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.BlockedCondition):
	case WaitsForActive(s) && len(s.Status.Active) > 0:
	default:
		due := next.Add(scheduledjob.Delay(events.ProjectScheduledJob(s)))
		if created := s.CreationTimestamp.Time; created.After(due) { // runAt and startAfter may be in the past
			due = created
		}
		if l := s.Status.LastRun; l != nil && WaitsForActive(s) && l.CompletionTime.After(due) {
			due = l.CompletionTime.Time
		}
		return due
	}
	return time.Time{}
}

// WaitsForActive reports whether a time that comes while a Job is active waits for the end of that Job, instead of getting a Job or
// being skipped.
func WaitsForActive(s *v1alpha1.ScheduledJob) bool {
	return s.Spec.ConcurrencyPolicy == v1alpha1.ReplaceConcurrent || s.Spec.ConcurrencyPolicy == v1alpha1.QueueConcurrent
}

// IsManaged reports whether jobstream manages the Job.
func IsManaged(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.ManagedBy, "") == v1alpha1.DefaultManagedBy
}

// condition returns the Job's first condition that is True and of one of the types, or nil.
func condition(j *batchv1.Job, types ...batchv1.JobConditionType) *batchv1.JobCondition {
	for _, t := range types {
		for i := range j.Status.Conditions {
			if c := &j.Status.Conditions[i]; c.Type == t && c.Status == corev1.ConditionTrue {
				return c
			}
		}
	}
	return nil
}

func (s Observation) job(j *batchv1.Job) string { return s.named("job", j.Name, j.Namespace) }

func (s Observation) scheduled(o *v1alpha1.ScheduledJob) string {
	return s.named("scheduledjob", o.Name, o.Namespace)
}

// named returns the object's name in the form that kubectl uses.
func (s Observation) named(kind, name, namespace string) string {
	if s.AllNamespaces {
		return fmt.Sprintf("%s/%s in %s", kind, name, namespace)
	}
	return kind + "/" + name
}

func others(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", and one other"
	}
	return fmt.Sprintf(", and %d others", n)
}

// round rounds a duration to a readable precision.
func round(d time.Duration) time.Duration {
	if d > time.Hour {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}
