package events

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// ReannounceWindow is the largest age of starts and ends that are announced again after a loss of state. The stream of events
// recognizes repetitions for a little longer.
const ReannounceWindow = time.Hour

// JobStarted means that a Job has started: its first Pods may be created. A Job that is suspended and resumed starts again.
type JobStarted struct {
	// Job is the one that has started.
	Job Reference `json:"job"`
	// Created is when the Job was created.
	Created time.Time `json:"created,omitzero"`
	// Start is status.startTime.
	Start time.Time `json:"start"`
	// Parallelism is how many Pods run at once at most.
	Parallelism int32 `json:"parallelism"`
	// Completions is how many Pods must succeed; a work queue has none.
	Completions *int32 `json:"completions,omitempty"`
	// CompletionMode is NonIndexed or Indexed.
	CompletionMode batchv1.CompletionMode `json:"completionMode"`
	// Owner is the ScheduledJob whose run the Job is; any other Job has none.
	Owner *RunOwner `json:"owner,omitempty"`
	// TemplateHash is a hash of the Pod template, without what the API server and a ScheduledJob add: Jobs made of the same template have
	// the same one. A new version of jobstream or Kubernetes may change it.
	TemplateHash string `json:"templateHash,omitempty"`
	// ManagedBy is spec.managedBy, if it is set.
	ManagedBy string `json:"managedBy,omitempty"`
	// Labels are those of the Job's that the operator has chosen.
	Labels map[string]string `json:"labels,omitempty"`
	// ParentSpan is the traceparent in the Job's annotation: the span that the Job's continues. "" for none.
	ParentSpan string `json:"parentSpan,omitempty"`
}

// JobFinished means that a Job is Complete or Failed. Both are final.
type JobFinished struct {
	// Job is the one that has finished.
	Job Reference `json:"job"`
	// Result is how it has finished.
	Result JobResult `json:"result"`
	// Reason is that of the condition, in one word.
	Reason string `json:"reason,omitempty"`
	// Message is the reason for people. Its wording may change.
	Message string `json:"message,omitempty"`
	// Succeeded is how many Pods have succeeded; of an Indexed Job how many indexes have.
	Succeeded int32 `json:"succeeded"`
	// Failed is how many Pods have failed.
	Failed int32 `json:"failed"`
	// Completions is how many Pods had to succeed; a work queue has none.
	Completions *int32 `json:"completions,omitempty"`
	// CompletedIndexes is the set of indexes of an Indexed Job that have succeeded, such as "0-3,7"; absent if none has.
	CompletedIndexes string `json:"completedIndexes,omitempty"`
	// FailedIndexes is the set of indexes that have failed for good, if the Job has a limit per index.
	FailedIndexes string `json:"failedIndexes,omitempty"`
	// FailedIndexExits are how the failed indexes ended: the 20 lowest of failedIndexes. An index of which it is not known is missing.
	FailedIndexExits []IndexExit `json:"failedIndexExits,omitempty"`
	// FailedValues are the values of failed indexes, if the Job's annotation jobstream.dev/publish-failed-values asks for them.
	FailedValues *FailedValues `json:"failedValues,omitempty"`
	// LastFailure is how the Pod failed that failed last before the end was decided; absent if none did.
	LastFailure *PodFailure `json:"lastFailure,omitempty"`
	// Created is when the Job was created.
	Created time.Time `json:"created,omitzero"`
	// Start is status.startTime; a Job that never started has none.
	Start time.Time `json:"start,omitzero"`
	// End is when the condition became True.
	End time.Time `json:"end"`
	// DurationSeconds is the time from Start to End; 0 for a Job that never started.
	DurationSeconds int64 `json:"durationSeconds"`
	// Owner is the ScheduledJob whose run the Job is; any other Job has none.
	Owner *RunOwner `json:"owner,omitempty"`
	// TemplateHash is a hash of the Pod template, without what the API server and a ScheduledJob add: Jobs made of the same template have
	// the same one. A new version of jobstream or Kubernetes may change it.
	TemplateHash string `json:"templateHash,omitempty"`
	// ManagedBy is spec.managedBy, if it is set.
	ManagedBy string `json:"managedBy,omitempty"`
	// Labels are those of the Job's that the operator has chosen.
	Labels map[string]string `json:"labels,omitempty"`
	// ParentSpan is the traceparent in the Job's annotation: the span that the Job's continues. "" for none.
	ParentSpan string `json:"parentSpan,omitempty"`
}

// FailedValues are the per-completion values of failed indexes.
type FailedValues struct {
	// ConfigMap is the name of the immutable ConfigMap that has the values of all indexes.
	ConfigMap string `json:"configMap"`
	// Indexes are the 20 lowest of failedIndexes; of a Job without a limit per index the one of lastFailure, unless it has succeeded since.
	Indexes []IndexValues `json:"indexes"`
}

// IndexValues are the values of one index.
type IndexValues struct {
	// Index is the completion index.
	Index int `json:"index"`
	// Values has a value for each variable, at most ten of them by name. A value of more than 256 bytes is cut, and ends with "…".
	Values map[string]string `json:"values"`
}

// RunOwner is the ScheduledJob that a Job is a run of.
type RunOwner struct {
	// ScheduledJob is the one whose run it is.
	ScheduledJob Reference `json:"scheduledJob"`
	// Nominal is the nominal time of the Job. A Job that a user has started for now has none.
	Nominal time.Time `json:"nominal,omitzero"`
	// Manual reports whether a user, not the clock, has started the Job: for now, or to make up for Nominal.
	Manual bool `json:"manual,omitempty"`
}

// JobResult is how a Job has finished.
type JobResult string

// The results.
const (
	// JobSucceeded: the Job is Complete.
	JobSucceeded JobResult = "Succeeded"
	// JobFailed: the Job is Failed.
	JobFailed JobResult = "Failed"
)

// Started returns the JobStarted that this observation of the Job shows; ok is false if it has not started, or is suspended.
func (j Job) Started() (e JobStarted, ok bool) {
	if j.Status.StartTime == nil {
		return e, false
	}
	mode := batchv1.NonIndexedCompletion
	if j.Indexed {
		mode = batchv1.IndexedCompletion
	}
	return JobStarted{Job: j.reference(), Created: j.Created.UTC(), Start: j.Status.StartTime.UTC(), Parallelism: j.Parallelism, Completions: j.Completions,
		CompletionMode: mode, Owner: j.Owner, TemplateHash: j.TemplateHash, ManagedBy: j.ManagedBy, Labels: j.Labels, ParentSpan: j.Options.ParentSpan}, true
}

// Ended returns the JobFinished that this observation of the Job shows; ok is false if it has not finished.
func (j Job) Ended() (e JobFinished, ok bool) {
	st := j.Status
	e = JobFinished{Job: j.reference(), Created: j.Created.UTC(), Succeeded: st.Succeeded, Failed: st.Failed, Completions: j.Completions,
		CompletedIndexes: st.CompletedIndexes, FailedIndexExits: j.FailedIndexExits, LastFailure: j.LastFailure, Owner: j.Owner,
		TemplateHash: j.TemplateHash, ManagedBy: j.ManagedBy, Labels: j.Labels, ParentSpan: j.Options.ParentSpan}
	if st.FailedIndexes != nil {
		e.FailedIndexes = *st.FailedIndexes
	}
	c, failed := j.Condition(batchv1.JobFailed)
	e.Result = JobFailed
	if !failed {
		c, ok = j.Condition(batchv1.JobComplete)
		e.Result = JobSucceeded
	}
	if !failed && !ok {
		return JobFinished{}, false
	}
	e.Reason, e.Message, e.End = c.Reason, c.Message, c.LastTransitionTime.UTC()
	if st.StartTime != nil {
		e.Start = st.StartTime.UTC()
		e.DurationSeconds = max(0, int64(e.End.Sub(e.Start)/time.Second)) // two clocks may make it negative
	}
	if failed && j.Options.PublishFailedValues && j.Options.Parameters != "" {
		e.FailedValues = j.failedValues()
	}
	return e, true
}

// failedValues returns which indexes have values to be published, still without the values; nil if none has. Only the adapter reads
// these, when it announces the event: no state and no fact has them.
func (j Job) failedValues() *FailedValues {
	out := &FailedValues{ConfigMap: j.Options.Parameters}
	if f := j.LastFailure; j.BackoffLimitPerIndex == nil && f != nil && f.Index != nil && !within(j.Status.CompletedIndexes, *f.Index) {
		out.Indexes = []IndexValues{{Index: *f.Index}}
	}
	for first, last := range spans(orDefault(j.Status.FailedIndexes, "")) {
		for i := first; i <= last && len(out.Indexes) < MaxIndexExits; i++ {
			out.Indexes = append(out.Indexes, IndexValues{Index: i})
		}
		if len(out.Indexes) == MaxIndexExits {
			break
		}
	}
	if len(out.Indexes) == 0 {
		return nil
	}
	return out
}

func (j Job) reference() Reference {
	return Reference{Namespace: j.Namespace, Name: j.Name, UID: j.UID}
}

func (e JobStarted) about() (Reference, string) { return e.Job, "jobs" }
func (e JobStarted) kind() string               { return "job.start" }
func (e JobStarted) id() string                 { return moment(e.Job, "start", e.Start) }
func (e JobStarted) at() time.Time              { return e.Start }
func (e JobStarted) words() []string            { return nil }
func (e JobStarted) sequence() string           { return order(0, e.Start) }

func (e JobFinished) about() (Reference, string) { return e.Job, "jobs" }
func (e JobFinished) kind() string               { return "job.finish" }
func (e JobFinished) id() string                 { return moment(e.Job, "finish", e.End) }
func (e JobFinished) at() time.Time              { return e.End }
func (e JobFinished) words() []string            { return []string{strings.ToLower(string(e.Result))} }
func (e JobFinished) sequence() string           { return order(1, e.End) }

// moment returns an id: a Job may start and finish in the same second.
func moment(job Reference, what string, at time.Time) string {
	return string(job.UID) + "/" + what + "/" + at.UTC().Format(time.RFC3339)
}

// order returns a text that sorts starts by time, and the end after all of them, even if a slow clock wrote it.
func order(rank int, at time.Time) string {
	return fmt.Sprintf("%d/%s", rank, at.UTC().Format(time.RFC3339))
}

// String describes the start.
func (e JobStarted) String() string { return "JobStart " + e.Start.UTC().Format(time.RFC3339) }

// String describes the end.
func (e JobFinished) String() string {
	out := "JobFinish " + string(e.Result)
	if e.Reason != "" {
		out += "(" + e.Reason + ")"
	}
	return out + " " + e.End.UTC().Format(time.RFC3339)
}
