package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// What a user reads of a failed Pod, by the evidence that the Pod carries.
func TestFailureOfAPod(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  events.Pod
		want string
	}{
		{"a container has failed", events.Pod{Name: "pi-x", Index: 3, End: &events.PodEnd{Node: "n1", Container: &events.ContainerEnd{Name: "main", ExitCode: 3, Reason: "Error"}}},
			"Pod pi-x failed: container main, exit code 3, Error, on node n1"},
		{"evicted", events.Pod{Name: "pi-x", Index: events.NoIndex, End: &events.PodEnd{Node: "n1", Reason: "Evicted"}}, "Pod pi-x failed: Evicted, on node n1"},
		{"evicted, and its container was killed", events.Pod{Name: "pi-x", End: &events.PodEnd{Reason: "Evicted", Container: &events.ContainerEnd{Name: "main", ExitCode: 137, Reason: "Error"}}},
			"Pod pi-x failed: container main, exit code 137, Evicted"},
		{"of a snapshot, which has no details", events.Pod{Name: "pi-x", Exits: []events.Exit{{Container: "main", Code: 4}, {Container: "init", Code: 1}}},
			"Pod pi-x failed: container main, exit code 4"},
		{"nothing is known", events.Pod{Name: "pi-x"}, "Pod pi-x failed"},
		{"a container that has succeeded is not to blame", events.Pod{Name: "pi-x", End: &events.PodEnd{Reason: "DeadlineExceeded", Container: &events.ContainerEnd{Name: "main"}}},
			"Pod pi-x failed: DeadlineExceeded"},
	} {
		c.pod.Finished = at(5)
		f := events.FailureOf(c.pod)
		if f.String() != c.want || !f.Time.Equal(at(5)) || (f.Index == nil) != (c.pod.Index == events.NoIndex) {
			t.Errorf("%s: %v (%+v), want %s", c.name, f, f, c.want)
		}
	}
}

// Observations come in any order, and snapshots show less: the later failure stays, and of one failure all that was ever seen.
func TestTheLaterFailureStays(t *testing.T) {
	first := &events.PodFailure{Pod: "b", Time: at(1)}
	bare := &events.PodFailure{Pod: "a", Time: at(2)}
	full := &events.PodFailure{Pod: "a", Time: at(2), Node: "n", Container: "main", ExitCode: 1}
	same := events.PodFailure{Pod: "a", Node: "n", Container: "c", ExitCode: 1, Reason: "r", Time: at(2)}
	for field, change := range map[string]func(*events.PodFailure){
		"time": func(f *events.PodFailure) { f.Time = at(3) }, "Pod": func(f *events.PodFailure) { f.Pod = "b" }, "node": func(f *events.PodFailure) { f.Node = "o" },
		"container": func(f *events.PodFailure) { f.Container = "d" }, "exit code": func(f *events.PodFailure) { f.ExitCode = 2 }, "reason": func(f *events.PodFailure) { f.Reason = "s" },
	} {
		more := same
		change(&more)
		if more.Later(&same) != &more || same.Later(&more) != &more {
			t.Errorf("of two that differ in their %s, which one stays depends on their order", field)
		}
	}
	for _, order := range [][]*events.PodFailure{{first, bare, full}, {full, first, bare}, {bare, full, first}, {nil, full, nil}} {
		var last *events.PodFailure
		for _, f := range order {
			last = last.Later(f)
		}
		if last != full {
			t.Errorf("%v: %+v", order, last)
		}
	}
}

// Users may write the annotation: what no reconciler has written is ignored.
func TestLastFailureOfAJob(t *testing.T) {
	whole := events.PodFailure{Pod: "pi-x", Index: new(2), Node: "n1", Container: "main", ExitCode: 3, Reason: "Error", Time: at(4)}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	read := func(annotation string) *events.PodFailure {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.LastFailureAnnotation: annotation}}}
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		return events.ProjectJob(j, events.Claim{}).LastFailure
	}
	got := read(string(text))
	if got == nil || got.String() != whole.String() || *got.Index != 2 || !got.Time.Equal(at(4)) {
		t.Errorf("%s is read as %+v", text, got)
	}
	long := strings.Repeat("a", 253)
	for name, good := range map[string]string{
		"a Pod with the longest name":       `{"time":"2026-01-02T03:04:05Z","pod":"` + long + `"}`,
		"a node with the longest name":      `{"time":"2026-01-02T03:04:05Z","pod":"a","node":"` + long + `"}`,
		"a container with the longest name": `{"time":"2026-01-02T03:04:05Z","pod":"a","container":"` + long + `"}`,
		"as much as any record may have":    `{"time":"2026-01-02T03:04:05Z","pod":"a"}` + strings.Repeat(" ", 1024-len(`{"time":"2026-01-02T03:04:05Z","pod":"a"}`)),
	} {
		if read(good) == nil {
			t.Errorf("%s is not read", name)
		}
	}
	for name, bad := range map[string]string{
		"a node with a long name":      `{"time":"2026-01-02T03:04:05Z","pod":"a","node":"` + long + `a"}`,
		"a container with a long name": `{"time":"2026-01-02T03:04:05Z","pod":"a","container":"` + long + `a"}`,
		"one byte more":                `{"time":"2026-01-02T03:04:05Z","pod":"a"}` + strings.Repeat(" ", 1025-len(`{"time":"2026-01-02T03:04:05Z","pod":"a"}`)),
		"missing":                      "", "no JSON": "{", "another type": `[]`, "no Pod": `{"time":"2026-01-02T03:04:05Z"}`, "no time": `{"pod":"a"}`,
		"a time that is none":      `{"pod":"a","time":"yesterday"}`,
		"a reason of many words":   `{"pod":"a","time":"2026-01-02T03:04:05Z","reason":"my password is"}`,
		"a long name":              `{"time":"2026-01-02T03:04:05Z","pod":"` + strings.Repeat("a", 254) + `"}`,
		"more than any record has": `{"pod":"a","time":"2026-01-02T03:04:05Z","x":"` + strings.Repeat("a", 1024) + `"}`,
	} {
		if got := read(bad); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.LastFailureAnnotation: string(text)}}}
	if got := events.ProjectJob(j, events.Claim{}).LastFailure; got != nil {
		t.Errorf("a new Job, copied from one that has failed: %+v", got)
	}
	j.Status.StartTime = &metav1.Time{Time: time.Unix(0, 0)}
	if got := events.ProjectJob(j, events.Claim{}).LastFailure; got == nil {
		t.Error("a Job that has started")
	}
}
