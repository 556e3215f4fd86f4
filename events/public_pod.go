package events

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PodFinished means that a Pod has ended, and how its Job's status counts it: one event for each Pod that the status accounts
// for. A Pod that counts for nothing, such as a surplus one, has none.
type PodFinished struct {
	// Job is the one whose Pod it was.
	Job Reference `json:"job"`
	// Pod is the one that has ended.
	Pod Reference `json:"pod"`
	// Result is how it counts.
	Result PodResult `json:"result"`
	// Reason is the reason in the Pod's own status, such as Evicted; "" if it has none.
	Reason string `json:"reason,omitempty"`
	// Index is the completion index; nil for a Pod of a Job that is not Indexed.
	Index *int `json:"index,omitempty"`
	// Container is the one that decided: the first that failed, or in a Pod that has succeeded the last to end. nil if none is
	// known.
	Container *ContainerEnd `json:"container,omitempty"`
	// Node is where the Pod ran; "" for one that was never scheduled.
	Node string `json:"node,omitempty"`
	// Start is status.startTime; zero for a Pod that no node has started.
	Start time.Time `json:"start,omitzero"`
	// End is when its containers had ended, by the best evidence that the Pod carries.
	End time.Time `json:"end"`
	// DurationSeconds is the time from Start to End; 0 without a Start.
	DurationSeconds int64 `json:"durationSeconds"`
	// Owner is the ScheduledJob whose run the Job is; any other Job has none.
	Owner *RunOwner `json:"owner,omitempty"`
	// ParentSpan is the traceparent in the Job's annotation: the span that the Job's continues. "" for none.
	ParentSpan string `json:"parentSpan,omitempty"`
}

// PodResult is how the end of a Pod counts.
type PodResult string

// The results.
const (
	// PodSucceeded: the Pod, or the index at which it has succeeded, counts as succeeded.
	PodSucceeded PodResult = "Succeeded"
	// PodFailed: the Pod counts as failed.
	PodFailed PodResult = "Failed"
	// PodIgnored: the Pod has failed, and the Job's podFailurePolicy ignores that.
	PodIgnored PodResult = "Ignored"
)

// PodFinish returns the event of the end of a Pod of that Job.
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
		e.DurationSeconds = max(0, int64(e.End.Sub(e.Start)/time.Second)) // two clocks may make it negative
	}
	return e
}

// podMark occurs in the ids of PodFinished, and in no others: a UID has no slash.
const podMark = "/pod/"

// FinishedPod returns the UID of the Pod in the id of a PodFinished; ok is false for the id of another event.
func FinishedPod(id string) (pod types.UID, ok bool) {
	_, uid, ok := strings.Cut(id, podMark)
	return types.UID(uid), ok
}

func (e PodFinished) about() (Reference, string) { return e.Job, "jobs" }
func (e PodFinished) kind() string               { return "pod.finish" }
func (e PodFinished) id() string                 { return string(e.Job.UID) + podMark + string(e.Pod.UID) }
func (e PodFinished) at() time.Time              { return e.End }
func (e PodFinished) words() []string            { return []string{strings.ToLower(string(e.Result))} }

// sequence sorts after a start in the same second, and before any later start and the Job's end.
func (e PodFinished) sequence() string { return order(0, e.End) + "/" + string(e.Pod.UID) }

// String describes the end.
func (e PodFinished) String() string {
	return "PodFinish " + string(e.Result) + " " + e.Pod.Name + " " + e.End.UTC().Format(time.RFC3339)
}
