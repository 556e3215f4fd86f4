package show

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
)

// Story records some Jobs since Began; the zero value records none. All times are those of the observation, by one clock: times
// in the objects are rounded to seconds.
type Story struct {
	Began time.Time
	Jobs  []*Job
	// Schedule and Crash are nil until they happen.
	Schedule *Schedule
	Crash    *Crash

	received map[string]bool // public events, by type and id
}

// manyCompletions is the number from which a Job gets a line half way.
const manyCompletions = 10

// Job is what has been observed of one Job.
type Job struct {
	Name string
	// Wants is how the Job should end: Complete or Failed.
	Wants batchv1.JobConditionType
	// Result is how it has ended, "" before that; Reason is the controller's reason.
	Result batchv1.JobConditionType
	Reason string

	// Completions is the number of successes it needs, 0 for a work queue; Parallelism is how many Pods may run at once.
	Completions, Parallelism int32
	// BackoffLimit is the number of Pods that may fail before the Job fails.
	BackoffLimit int32
	// Succeeded and Failed are the counters of its status.
	Succeeded, Failed int32

	// Finish is the JobFinish that the subscriber received, or nil.
	Finish *events.JobFinished

	// Times of observation: Applied of the Job, FirstPod of its first Pod, LastEnd of the end of the Pod that ended last, Ended of
	// the terminal condition, Finalized of the last finalizer's removal.
	Applied, FirstPod, LastEnd, Ended, Finalized time.Time
	// NextTry is when the Pod that replaces a failed one may be created.
	NextTry time.Time

	half bool // half of its completions have been seen
	pods map[types.UID]*pod
}

type pod struct {
	name  string
	phase corev1.PodPhase
	held  bool
}

// Expect adds a Job that will be applied and should end as wanted.
func (s *Story) Expect(name string, wants batchv1.JobConditionType) {
	s.Jobs = append(s.Jobs, &Job{Name: name, Wants: wants, pods: map[types.UID]*pod{}})
}

// SawJob records the state of a Job, and returns what is worth telling about it.
func (s *Story) SawJob(j *batchv1.Job, at time.Time) []Moment {
	s.Schedule.sawRun(j)
	k := s.job(j.Name)
	if k == nil || !k.Ended.IsZero() {
		return nil
	}
	var m moments
	k.Completions, k.Parallelism, k.BackoffLimit = ptr.Deref(j.Spec.Completions, 0), ptr.Deref(j.Spec.Parallelism, 1), ptr.Deref(j.Spec.BackoffLimit, 6)
	k.Succeeded, k.Failed = j.Status.Succeeded, j.Status.Failed
	if k.Applied.IsZero() {
		k.Applied = at
		m.say(at, k, "applied: %s", k.work())
	}
	m = append(m, s.resumed(k, j, at)...)
	if k.Completions >= manyCompletions && k.Succeeded >= k.Completions/2 && !k.half {
		k.half = true
		m.say(at, k, "%d of %d succeeded", k.Succeeded, k.Completions)
	}
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			k.Ended, k.Result, k.Reason = at, c.Type, c.Reason
		}
	}
	return append(m, k.finalized(at)...)
}

// SawPod records the state of a Pod, or its deletion, and returns what is worth telling about it.
func (s *Story) SawPod(p *corev1.Pod, gone bool, at time.Time) []Moment {
	k := s.owner(p)
	if k == nil {
		return nil
	}
	var m moments
	have := k.pods[p.UID]
	if have == nil {
		have = &pod{name: p.Name}
		k.pods[p.UID] = have
		if len(k.pods) == 1 {
			k.FirstPod = at
			m.say(at, k, "first Pod created %s later", span(at.Sub(k.Applied)))
		} else if !k.NextTry.IsZero() {
			k.NextTry = time.Time{}
			m.say(at, k, "tried again: Pod %s", p.Name)
		}
	}
	was := have.phase
	have.phase, have.held = p.Status.Phase, !gone && slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
	if ended(have.phase) && !ended(was) {
		k.LastEnd = at
		if have.phase == corev1.PodFailed {
			k.podFailed(&m, p, at)
		}
	}
	return append(m, k.finalized(at)...)
}

// JobsOver reports whether every Job has ended, its JobFinish has arrived, and no finalizer is left.
func (s *Story) JobsOver() bool {
	return !slices.ContainsFunc(s.Jobs, func(k *Job) bool { return !k.over() })
}

// JobOver reports the same for one Job.
func (s *Story) JobOver(name string) bool {
	k := s.job(name)
	return k != nil && k.over()
}

// Knows reports whether the Job was expected.
func (s *Story) Knows(name string) bool { return s.job(name) != nil }

func (k *Job) over() bool { return !k.Finalized.IsZero() && k.Finish != nil }

// AsExpected reports whether every Job has ended as wanted, and the schedule has no deviation.
func (s *Story) AsExpected() bool {
	return !slices.ContainsFunc(s.Jobs, func(k *Job) bool { return k.judgement() != "yes" }) && (s.Schedule == nil || len(s.Schedule.faults()) == 0)
}

// PodOf returns the name of a succeeded Pod of the Job, the first by name; "" if there is none.
func (s *Story) PodOf(job string) string {
	name := ""
	if k := s.job(job); k != nil {
		for _, p := range k.pods {
			if p.phase == corev1.PodSucceeded && (name == "" || p.name < name) {
				name = p.name
			}
		}
	}
	return name
}

func (s *Story) job(name string) *Job {
	for _, k := range s.Jobs {
		if k.Name == name {
			return k
		}
	}
	return nil
}

func (s *Story) owner(p *corev1.Pod) *Job {
	for _, o := range p.OwnerReferences {
		if o.Kind == "Job" && ptr.Deref(o.Controller, false) {
			return s.job(o.Name)
		}
	}
	return nil
}

// finalized reports, once, that the Job has ended and none of its Pods has the finalizer.
func (k *Job) finalized(at time.Time) []Moment {
	if k.Ended.IsZero() || !k.Finalized.IsZero() {
		return nil
	}
	for _, p := range k.pods {
		if p.held {
			return nil
		}
	}
	k.Finalized = at
	var m moments
	m.say(at, k, "%s, no finalizer left", k.ending())
	return m
}

func ended(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }
