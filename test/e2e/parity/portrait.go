package parity

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// eventsWithin is how long after a Job's end its last Event may come: Events are sent in the background.
const eventsWithin = time.Minute

// Portrait is what is compared of a Job at the end, without what differs from run to run: times, UIDs, generated names.
type Portrait struct {
	// Job is nil if it is gone.
	Job *JobPortrait
	// Events are those about the Job, each with its count.
	Events map[string]int
	// Components are their senders.
	Components []string
	// Pods are all Pods of the namespace.
	Pods []PodPortrait
	// Notes are what the steps recorded on the way.
	Notes []string
}

// JobPortrait is the object.
type JobPortrait struct {
	Labels, Annotations map[string]string
	Finalizers          []string
	Generation          int64
	// Writers are the owners of fields of the Job: the names in its managedFields.
	Writers            []string
	Spec               batchv1.JobSpec
	Status             batchv1.JobStatus
	Started, Completed bool
}

// brief returns a portrait in one line, for a log.
func (p Portrait) brief() string {
	if p.Job == nil {
		return fmt.Sprintf("the Job is gone, %d Pods are left", len(p.Pods))
	}
	return fmt.Sprintf("%s, %d Pods", harness.Brief(p.Job.Status), len(p.Pods))
}

// portrait takes the portrait once everything has come to rest.
func (s *Side) portrait(t testing.TB, ends batchv1.JobConditionType) Portrait {
	t.Helper()
	s.awaitNoneLeaving()
	out := Portrait{Notes: s.notes}
	words := s.words()
	if ends != "" {
		j := s.Job(s.JobName)
		out.Job = portrayJob(t, j, words)
		out.Events, out.Components = s.events(harness.Condition(j, ends), words)
	}
	for _, pod := range s.Pods("") {
		out.Pods = append(out.Pods, s.portrayPod(t, &pod, words))
	}
	for i := range out.Notes {
		out.Notes[i] = words(out.Notes[i])
	}
	return out
}

// generated is the suffix of a generated name.
const generated = `[bcdfghjklmnpqrstvwxz2456789]{5}`

// words replaces what differs from run to run by words.
func (s *Side) words() func(string) string {
	pod := regexp.MustCompile(regexp.QuoteMeta(s.JobName) + `(-[0-9]+)?-` + generated + `\b`)
	plain := strings.NewReplacer(string(s.JobUID), "UID-OF-JOB", s.Namespace, "NAMESPACE", s.Dir, "{{dir}}", s.JobName, "JOB")
	return func(text string) string { return plain.Replace(pod.ReplaceAllString(text, "JOB$1-xxxxx")) }
}

// in applies words to every value.
func in(m map[string]string, words func(string) string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = words(v)
	}
	return out
}

// within applies words to every text in an object.
func within[T any](object T, words func(string) string) (out T) {
	if err := json.Unmarshal([]byte(words(render(object))), &out); err != nil {
		panic(fmt.Errorf("%w: %s", err, words(render(object)))) // words keep it valid
	}
	return out
}

func portrayJob(t testing.TB, j *batchv1.Job, words func(string) string) *JobPortrait {
	t.Helper()
	out := &JobPortrait{
		Labels: in(j.Labels, words), Annotations: in(j.Annotations, words), Finalizers: j.Finalizers, Generation: j.Generation,
		Spec: within(j.Spec, words), Status: timeless(t, j), Started: j.Status.StartTime != nil, Completed: j.Status.CompletionTime != nil,
	}
	for i := range out.Status.Conditions {
		c := &out.Status.Conditions[i]
		c.Message = words(c.Message)
	}
	for _, f := range j.ManagedFields {
		if w := strings.TrimSuffix(f.Manager+" "+f.Subresource, " "); !slices.Contains(out.Writers, w) {
			out.Writers = append(out.Writers, w)
		}
	}
	slices.Sort(out.Writers)
	if at, err := time.Parse(time.RFC3339, out.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil && at.Second() == 0 {
		out.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = "a full minute" // the two may be created in different minutes
	}
	return out
}

// timeless checks the times and removes them.
func timeless(t testing.TB, j *batchv1.Job) batchv1.JobStatus {
	t.Helper()
	s := *j.Status.DeepCopy()
	if s.CompletionTime != nil && s.StartTime != nil && s.CompletionTime.Before(s.StartTime) {
		t.Errorf("started %v, completed %v", s.StartTime, s.CompletionTime)
	}
	apart := time.Second
	if j.Spec.ManagedBy == nil {
		apart = time.Minute // the built-in controller reads the clock twice, on a machine that may be busy
	}
	if c := harness.Condition(j, batchv1.JobComplete); c != nil && c.LastTransitionTime.Sub(s.CompletionTime.Time).Abs() > apart {
		t.Errorf("complete since %v, completed %v", c.LastTransitionTime, s.CompletionTime)
	}
	s.StartTime, s.CompletionTime = nil, nil
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.LastProbeTime.IsZero() || c.LastTransitionTime.IsZero() {
			t.Errorf("condition %s has no times", c.Type)
		}
		c.LastProbeTime.Reset()
		c.LastTransitionTime.Reset()
	}
	return s
}

// events waits until the Event about the end has come, which is the last, and returns all, with their senders.
func (s *Side) events(end *batchv1.JobCondition, words func(string) string) (events map[string]int, senders []string) {
	s.Helper()
	last := "Normal Completed"
	if end.Type == batchv1.JobFailed {
		last = "Warning " + end.Reason
	}
	ctx, cancel := context.WithTimeout(s.Context(), eventsWithin)
	defer cancel()
	_ = harness.Poll(ctx, func(context.Context) error { // a missing one shows in the comparison
		events, senders = sum(s.Events(s.JobName), words)
		for e := range events {
			if strings.HasPrefix(e, last+": ") {
				return nil
			}
		}
		return fmt.Errorf("there is no Event %s", last)
	})
	slices.Sort(senders)
	return events, slices.Compact(senders)
}

// sum counts Events by their text. If there are more than ten of a kind, the last ones are combined into one, and which they are
// is random: then all of the kind are counted together. A Pod that is deleted counts once: where its cache lags, the built-in controller
// deletes one again that is terminating, and says so.
func sum(all []corev1.Event, words func(string) string) (events map[string]int, senders []string) {
	events = map[string]int{}
	many := map[string]bool{}
	kind := func(e corev1.Event) string { return e.Type + " " + e.Reason }
	for _, e := range all {
		if strings.HasPrefix(e.Message, "(combined from similar events)") {
			many[kind(e)] = true
		}
	}
	for _, e := range all {
		what := words(e.Message)
		if many[kind(e)] {
			what = "(many)"
		}
		n := int(max(1, e.Count))
		if e.Reason == "SuccessfulDelete" && !many[kind(e)] {
			n = 1
		}
		events[kind(e)+": "+what] += n
		senders = append(senders, e.Source.Component)
	}
	return events, senders
}

// render returns what is compared.
func render(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // everything here can be marshalled
	}
	return string(text)
}

// indexOf returns the completion index of a Pod, empty for none.
func indexOf(p *corev1.Pod) string { return p.Annotations[batchv1.JobCompletionIndexAnnotation] }
