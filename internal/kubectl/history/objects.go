package history

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Objects returns a List with an item for each tick, for scripts.
func Objects(ticks []Tick) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: []unstructured.Unstructured{}}
	for _, t := range ticks {
		list.Items = append(list.Items, unstructured.Unstructured{Object: t.object()})
	}
	return list
}

func (t Tick) object() map[string]any {
	o := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Tick", "scheduledJob": reference(t.ScheduledJob),
		"time": t.Nominal.UTC().Format(time.RFC3339), "count": t.Count, "verdict": string(t.Verdict)}
	given(o, "until", moment(t.Until))
	given(o, "reason", t.Reason)
	given(o, "message", t.Message)
	r := t.Run
	if r == nil {
		return o
	}
	job := reference(r.Job)
	if r.ended() {
		given(job, "result", r.State)
	} else {
		given(job, "state", r.State)
	}
	given(job, "reason", r.Reason)
	given(job, "message", r.Message)
	given(job, "startTime", moment(r.Start))
	given(job, "completionTime", moment(r.End))
	if took, ok := r.Took(r.End); ok && r.ended() {
		job["durationSeconds"] = int64(took / time.Second)
	}
	o["job"] = job
	return o
}

func reference(r events.Reference) map[string]any {
	return map[string]any{"namespace": r.Namespace, "name": r.Name, "uid": string(r.UID)}
}

// given sets a field unless its value is "".
func given(o map[string]any, field, value string) {
	if value != "" {
		o[field] = value
	}
}

// moment returns "" for the zero time.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
