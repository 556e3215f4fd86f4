// Package doctor judges what a user sees of jobstream in a cluster: whether it seems to run, what the user may do, and which Jobs
// and ScheduledJobs are in trouble. It does no I/O and has no clock; what it judges has been listed when it is called.
//
//	doctor.go    Observation, which is what was listed, and whether jobstream seems to run
//	trouble.go   Jobs and ScheduledJobs in trouble
//	access.go    what each command needs to be allowed, and what a user's rules allow
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

// Patience is how long jobstream may take to do something about an object before its absence is the better explanation. It
// usually takes a tenth of a second, and some seconds after a crash.
const Patience = 30 * time.Second

// Observation is what was listed.
type Observation struct {
	Jobs          []batchv1.Job
	ScheduledJobs []v1alpha1.ScheduledJob
	// Where is that, for people: "the namespace shop".
	Where string
	// AllNamespaces is whether names need their namespace beside them.
	AllNamespaces bool
	// More is whether there are more than were listed.
	More bool
	// Now is when.
	Now time.Time
}

// Running judges whether jobstream takes care of what was listed. No API says so, and a user need not be allowed to see its
// Pods: what it has not done is the evidence, and what it has done last.
func (s Observation) Running() finding.Finding {
	const check = "jobstream"
	const advice = "look for its trigger and reconciler with: kubectl get deployments -A -l app.kubernetes.io/part-of=jobstream; if they are at work, their flag --namespaces may leave this one out"
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
	ours := 0
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if !isOurs(j) {
			continue
		}
		ours++
		if since := jobWaits(j); !since.IsZero() && s.Now.Sub(since) > Patience {
			note(s.job(j), since)
		}
		trace(s.job(j), j.Status.StartTime)
		if end := condition(j, batchv1.JobFailed, batchv1.JobComplete); end != nil {
			trace(s.job(j), &end.LastTransitionTime)
		}
	}
	for i := range s.ScheduledJobs {
		sj := &s.ScheduledJobs[i]
		ours++
		if since := scheduleWaits(sj); !since.IsZero() && s.Now.Sub(since) > Patience {
			note(s.scheduled(sj), since)
		}
		trace(s.scheduled(sj), sj.Status.LastScheduleTime)
	}
	switch {
	case waiting > 0:
		return finding.Worry(check, finding.Fail, advice, "does nothing about %s, which has waited for %v%s", oldest, round(longest), others(waiting-1))
	case last != "":
		return finding.Good(check, "nothing waits for it; its latest trace in %s is on %s, %v ago", s.Where, last, round(s.Now.Sub(when)))
	case ours > 0:
		return finding.Good(check, "nothing waits for it in %s", s.Where)
	}
	return finding.Good(check, "not visible, as %s has nothing for it to do; this shows it: kubectl jobstream run hello --image=busybox --wait -- true", s.Where)
}

// jobWaits is since when jobstream should have done something about the Job; zero where it has done all.
func jobWaits(j *batchv1.Job) time.Time {
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

// scheduleWaits is since when jobstream should have done something about the ScheduledJob; zero where it has done all. One that is
// Blocked is tried again and again, and one that replaces a Job waits for its Pods.
func scheduleWaits(s *v1alpha1.ScheduledJob) time.Time {
	next := s.Status.NextScheduleTime
	switch {
	case s.DeletionTimestamp != nil:
	case s.Status.ObservedGeneration == 0:
		return s.CreationTimestamp.Time
	case next == nil || ptr.Deref(s.Spec.Suspend, false) || meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.BlockedCondition):
	case s.Spec.ConcurrencyPolicy == v1alpha1.ReplaceConcurrent && len(s.Status.Active) > 0:
	default:
		return next.Add(scheduledjob.Delay(events.ProjectScheduledJob(s)))
	}
	return time.Time{}
}

// isOurs reports whether jobstream takes care of the Job.
func isOurs(j *batchv1.Job) bool { return ptr.Deref(j.Spec.ManagedBy, "") == v1alpha1.DefaultManagedBy }

// condition is the first condition of the Job that is True and of one of the types, nil for none.
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

// named is how kubectl calls the object.
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

// round makes a duration one that people read.
func round(d time.Duration) time.Duration {
	if d > time.Hour {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}
