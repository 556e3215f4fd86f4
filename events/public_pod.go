package events

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PodFinished says that a Pod has ended, and what its Job's status has made of that: one for each Pod that the status
// accounts for. A Pod that counts for nothing, such as one too many, has none.
type PodFinished struct {
	// Job is the one whose Pod it was.
	Job Reference `json:"job"`
	// Pod is the one that has ended.
	Pod Reference `json:"pod"`
	// Result is what its end counts as.
	Result PodResult `json:"result"`
	// Reason is that of the Pod's own status, such as Evicted; "" where it gives none.
	Reason string `json:"reason,omitempty"`
	// Index is the completion index; nil for a Pod of a Job that is not Indexed.
	Index *int `json:"index,omitempty"`
	// Container is the one that decided: the first that failed, or of a Pod that has succeeded the last to end. nil where
	// nobody knows of any.
	Container *ContainerEnd `json:"container,omitempty"`
	// Node is where the Pod ran; "" for one that was never scheduled.
	Node string `json:"node,omitempty"`
	// Start is status.startTime; zero for a Pod that no node has taken.
	Start time.Time `json:"start,omitzero"`
	// End is when its containers had ended, by the best evidence that the Pod carries.
	End time.Time `json:"end"`
	// DurationSeconds is the time from Start to End; 0 without a Start.
	DurationSeconds int64 `json:"durationSeconds"`
	// Owner is the ScheduledJob whose run the Job is; a Job that is no run has none.
	Owner *RunOwner `json:"owner,omitempty"`
	// ParentSpan is the traceparent that the Job's annotation says: of the span that the Job's continues. "" for none.
	ParentSpan string `json:"parentSpan,omitempty"`
}

// PodResult is what the end of a Pod counts as.
type PodResult string

// The results.
const (
	// PodSucceeded says that the Pod counts as succeeded, or the index that it has succeeded at does.
	PodSucceeded PodResult = "Succeeded"
	// PodFailed says that it counts as failed.
	PodFailed PodResult = "Failed"
	// PodIgnored says that it has failed, and that the Job's podFailurePolicy counts that for nothing.
	PodIgnored PodResult = "Ignored"
)

// PodFinish is the event of the end of a Pod of that Job.
func PodFinish(job Job, p Pod, result PodResult) PodFinished {
	e := PodFinished{Job: job.reference(), Pod: Reference{Namespace: job.Namespace, Name: p.Name, UID: p.UID}, Result: result,
		End: p.Finished.UTC(), Owner: job.Owner, ParentSpan: job.Options.ParentSpan}
	if p.Index != NoIndex {
		e.Index = &p.Index
	}
	if p.End == nil {
		return e
	}
	e.Reason, e.Container, e.Node = p.End.Reason, p.End.Container, p.End.Node
	if !p.End.Start.IsZero() {
		e.Start = p.End.Start.UTC()
		e.DurationSeconds = max(0, int64(e.End.Sub(e.Start)/time.Second)) // by two clocks it may be less than nothing
	}
	return e
}

// podMark stands in the ids of PodFinished, and of nothing else: a UID holds no slash.
const podMark = "/pod/"

// FinishedPod is the Pod that the public event with that id says the end of; ok is false for an event of another type.
func FinishedPod(id string) (pod types.UID, ok bool) {
	_, uid, ok := strings.Cut(id, podMark)
	return types.UID(uid), ok
}

func (e PodFinished) about() (Reference, string) { return e.Job, "jobs" }
func (e PodFinished) kind() string               { return "pod.finish" }
func (e PodFinished) id() string                 { return string(e.Job.UID) + podMark + string(e.Pod.UID) }
func (e PodFinished) at() time.Time              { return e.End }
func (e PodFinished) words() []string            { return []string{strings.ToLower(string(e.Result))} }

// sequence is after a start of the same second, and before any later start and the Job's end.
func (e PodFinished) sequence() string { return order(0, e.End) + "/" + string(e.Pod.UID) }

// String says how and when it finished.
func (e PodFinished) String() string {
	return "PodFinish " + string(e.Result) + " " + e.Pod.Name + " " + e.End.UTC().Format(time.RFC3339)
}
