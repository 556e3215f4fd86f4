package parity

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// A Difference is an intended difference between a Job under jobstream and one under the built-in controller.
type Difference struct {
	ID, What, Why string
	// take removes it from both portraits and reports whether it was there.
	take func(builtIn, jobstream *Portrait) bool
}

// Differences are all intended differences. One that no case shows any more fails the test, so that the list stays true.
var Differences = []Difference{
	{
		ID: "managed-by", What: "`spec.managedBy` of the Job is `" + v1alpha1.DefaultManagedBy + "`",
		Why: "that hands a Job to jobstream",
		take: onJob(func(j *JobPortrait) bool {
			jobstream := ptr.Deref(j.Spec.ManagedBy, "") == v1alpha1.DefaultManagedBy
			j.Spec.ManagedBy = nil
			return jobstream
		}),
	},
	{
		ID: "managed-label", What: "Pods carry the label `" + v1alpha1.ManagedLabel + "`",
		Why:  "the trigger watches the Pods of all of jobstream's Jobs, and no others, by one selector",
		take: onPods(func(p *PodPortrait) bool { return remove(p.Labels, v1alpha1.ManagedLabel) }),
	},
	{
		ID: "serial-annotation", What: "Pods carry the annotation `" + v1alpha1.SerialAnnotation + "`",
		Why:  "the serial, which its name shows too, identifies a Pod when all memory is lost, so that it is counted once",
		take: onPods(func(p *PodPortrait) bool { return remove(p.Annotations, v1alpha1.SerialAnnotation) }),
	},
	{
		ID: "pod-name", What: "`metadata.generateName` of a Pod is empty; its name looks like the built-in controller's, and its suffix is a function of the Job's UID and the serial",
		Why: "a repeated creation, by any reconciler, finds the Pod of the first one: no Pod is doubled",
		take: func(builtIn, jobstream *Portrait) bool {
			found := false
			for i := range builtIn.Pods {
				builtIn.Pods[i].GenerateName = ""
			}
			for i := range jobstream.Pods {
				found = found || jobstream.Pods[i].GenerateName == ""
				jobstream.Pods[i].GenerateName = ""
			}
			return found
		},
	},
	{
		ID: "next-serial-annotation", What: "the Job carries the annotation `" + v1alpha1.NextSerialAnnotation + "`",
		Why:  "names of Pods are not used again when all memory is lost",
		take: onJob(func(j *JobPortrait) bool { return remove(j.Annotations, v1alpha1.NextSerialAnnotation) }),
	},
	{
		ID: "backoff-annotation", What: "a Job with failed Pods carries the annotation `" + v1alpha1.BackoffAnnotation + "`",
		Why:  "the delay between retries outlives the reconciler; the built-in controller forgets it when it restarts",
		take: onJob(func(j *JobPortrait) bool { return remove(j.Annotations, v1alpha1.BackoffAnnotation) }),
	},
	{
		ID: "last-failure-annotation", What: "a Job with failed Pods carries the annotation `" + v1alpha1.LastFailureAnnotation + "`",
		Why:  "it shows how a Pod failed when the Pod is gone",
		take: onJob(func(j *JobPortrait) bool { return remove(j.Annotations, v1alpha1.LastFailureAnnotation) }),
	},
	{
		ID: "failed-index-exits-annotation", What: "a Job with failed indexes carries the annotation `" + v1alpha1.FailedIndexExitsAnnotation + "`",
		Why:  "it shows how the indexes ended when the Pods are gone",
		take: onJob(func(j *JobPortrait) bool { return remove(j.Annotations, v1alpha1.FailedIndexExitsAnnotation) }),
	},
	{
		ID: "backing-off", What: "a Job that has waited for a retry has the condition `" + string(v1alpha1.BackingOffCondition) + "`, and an Event of that reason",
		Why: "users see what the Job waits for, and how the last Pod failed",
		take: func(_, jobstream *Portrait) bool {
			if jobstream.Job == nil {
				return false
			}
			found := slices.ContainsFunc(jobstream.Job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == v1alpha1.BackingOffCondition })
			jobstream.Job.Status = withoutBackingOff(jobstream.Job.Status)
			maps.DeleteFunc(jobstream.Events, func(event string, _ int) bool {
				return strings.HasPrefix(event, "Warning BackingOff: ") || strings.HasPrefix(event, "Warning PodsWaiting: ")
			})
			return found
		},
	},
	{
		ID: "suspended-by", What: "the message of the condition `Suspended`, and of its Event, names who has suspended the Job",
		Why: "users see whom to ask, or which queue the Job waits in",
		take: func(_, jobstream *Portrait) bool {
			found := false
			anonymous := func(text string) string {
				found = found || suspendedBy.MatchString(text)
				return suspendedBy.ReplaceAllString(text, "$1")
			}
			for event, n := range maps.Clone(jobstream.Events) {
				delete(jobstream.Events, event)
				jobstream.Events[anonymous(event)] += n
			}
			for i, note := range jobstream.Notes {
				jobstream.Notes[i] = anonymous(note)
			}
			if jobstream.Job != nil {
				for i := range jobstream.Job.Status.Conditions {
					c := &jobstream.Job.Status.Conditions[i]
					c.Message = anonymous(c.Message)
				}
			}
			return found
		},
	},
	{
		ID: "event-component", What: "Events are sent by `jobstream`, not by `job-controller`",
		Why: "users of `kubectl describe` see which controller acts",
		take: func(builtIn, jobstream *Portrait) bool {
			differs := !slices.Equal(builtIn.Components, jobstream.Components)
			if slices.Equal(builtIn.Components, []string{"job-controller"}) && slices.Equal(jobstream.Components, []string{"jobstream"}) {
				builtIn.Components, jobstream.Components = nil, nil
			}
			return differs
		},
	},
	{
		ID: "field-owner", What: "`metadata.managedFields` of a Job does not name jobstream",
		Why: "the API server spends a third of a status write on it; it is reset unless a user applies the status",
		take: func(builtIn, jobstream *Portrait) bool {
			if builtIn.Job == nil || jobstream.Job == nil {
				return false
			}
			controllers := func(w string) bool { return strings.HasSuffix(w, " status") }
			found := slices.ContainsFunc(builtIn.Job.Writers, controllers) && !slices.ContainsFunc(jobstream.Job.Writers, controllers)
			builtIn.Job.Writers, jobstream.Job.Writers = nil, nil
			return found
		},
	},
}

// suspendedBy is the message of the difference suspended-by. A Job may have the name suspended.
var suspendedBy = regexp.MustCompile(`(Job (?:suspended|JOB)) by [^ )]+`)

// withoutBackingOff removes the condition of the difference backing-off, and PodsWaiting, which Pods have on a busy machine.
func withoutBackingOff(s batchv1.JobStatus) batchv1.JobStatus {
	s = *s.DeepCopy()
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == v1alpha1.BackingOffCondition || c.Type == v1alpha1.PodsWaitingCondition
	})
	return s
}

// onPods is a difference that shows on the Pods of jobstream's Job.
func onPods(take func(*PodPortrait) bool) func(builtIn, jobstream *Portrait) bool {
	return func(_, jobstream *Portrait) bool {
		found := false
		for i := range jobstream.Pods {
			found = take(&jobstream.Pods[i]) || found
		}
		return found
	}
}

// onJob is a difference that shows on jobstream's Job.
func onJob(take func(*JobPortrait) bool) func(builtIn, jobstream *Portrait) bool {
	return func(_, jobstream *Portrait) bool { return jobstream.Job != nil && take(jobstream.Job) }
}

func remove(m map[string]string, key string) bool {
	_, there := m[key]
	delete(m, key)
	return there
}

// Seen records which differences have shown.
type Seen struct {
	mu  sync.Mutex
	ids map[string]bool
}

// take removes the differences on record from both portraits.
func (s *Seen) take(builtIn, jobstream *Portrait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	for _, d := range Differences {
		if d.take(builtIn, jobstream) {
			s.ids[d.ID] = true
		}
	}
}

// Missing returns the differences on record that have not shown.
func (s *Seen) Missing() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range Differences {
		if !s.ids[d.ID] {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
