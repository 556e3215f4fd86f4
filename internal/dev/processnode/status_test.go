package processnode

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// summary renders a status in one line: phase, the containers' states, and the conditions that are true.
func summary(s v1.PodStatus) string {
	out := []string{string(s.Phase)}
	if s.Reason != "" {
		out[0] += "(" + s.Reason + ")"
	}
	for _, c := range append(append([]v1.ContainerStatus{}, s.InitContainerStatuses...), s.ContainerStatuses...) {
		state := "?"
		switch {
		case c.State.Running != nil:
			state = "running"
		case c.State.Terminated != nil:
			state = fmt.Sprint(c.State.Terminated.Reason, c.State.Terminated.ExitCode)
		case c.State.Waiting != nil:
			state = c.State.Waiting.Reason
		}
		if c.LastTerminationState.Terminated != nil {
			state += fmt.Sprint("<", c.LastTerminationState.Terminated.ExitCode)
		}
		if c.Ready {
			state += "!"
		}
		out = append(out, state)
	}
	for _, c := range s.Conditions {
		if c.Status == v1.ConditionTrue {
			out = append(out, string(c.Type))
		}
	}
	return strings.Join(out, " ")
}

func TestStatus(t *testing.T) {
	deleted := stopOrder{at: at(5)}
	deadline := stopOrder{at: at(5), reason: "DeadlineExceeded"}
	const up = "PodReadyToStartContainers"
	for _, test := range []struct {
		containers string
		stop       stopOrder
		done       bool
		want       string
	}{
		{"main:run", stopOrder{}, false, "Running running! " + up + " Initialized Ready ContainersReady PodScheduled"},
		{"main:run main:ok", stopOrder{}, false, "Running running! Completed0 " + up + " Initialized PodScheduled"},
		{"main:run main:wait", stopOrder{}, false, "Pending running!  " + up + " Initialized PodScheduled"},
		{"init:run main:wait", stopOrder{}, false, "Pending running  " + up + " PodScheduled"},
		{"init:ok side:run main:run", stopOrder{}, false, "Running Completed0! running! running! " + up + " Initialized Ready ContainersReady PodScheduled"},
		{"main:fail+again", stopOrder{}, false, "Running <1 " + up + " Initialized PodScheduled"},
		{"main:ok", stopOrder{}, true, "Succeeded Completed0 Initialized PodScheduled"},
		{"main:ok main:fail", stopOrder{}, true, "Failed Completed0 Error1 Initialized PodScheduled"},
		{"side:fail main:ok", stopOrder{}, true, "Succeeded Error1 Completed0 Initialized PodScheduled"},
		{"init:fail main:wait", stopOrder{}, true, "Failed Error1  PodScheduled"},
		{"main:fail+again", deleted, true, "Failed Error1 Initialized PodScheduled"},
		{"main:ok+again", deleted, true, "Succeeded Completed0 Initialized PodScheduled"},
		{"main:wait", deleted, true, "Failed ContainerStatusUnknown137 Initialized PodScheduled"},
		{"init:wait main:wait", deleted, true, "Failed   PodScheduled"},
		{"main:fail main:wait", deleted, true, "Failed Error1 ContainerStatusUnknown137 Initialized PodScheduled"},
		{"main:run", deadline, false, "Running running! " + up + " Initialized Ready ContainersReady PodScheduled"},
		{"main:ok", deadline, true, "Failed(DeadlineExceeded) Completed0 Initialized PodScheduled"},
	} {
		v := view{containers: sketch(t, test.containers), stop: test.stop, done: test.done, started: epoch, ip: "127.0.0.1", now: at(9)}
		if got := summary(statusOf(&v1.Pod{}, v)); got != test.want {
			t.Errorf("%s stopped by %q: status is\n%s\nand not\n%s", test.containers, test.stop.reason, got, test.want)
		}
	}
}

// What others have written stays, and a status that says nothing new is the same status.
func TestStatusKeepsWhatOthersWrote(t *testing.T) {
	pod := &v1.Pod{Status: v1.PodStatus{QOSClass: v1.PodQOSBestEffort, Conditions: []v1.PodCondition{
		{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI"},
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: stamp(at(-3))},
	}}}
	v := view{containers: sketch(t, "main:run"), started: epoch, ip: "127.0.0.1", now: at(1)}
	pod.Status = statusOf(pod, v)
	if c := pod.Status.Conditions; c[0].Reason != "EvictionByEvictionAPI" || !c[1].LastTransitionTime.Time.Equal(at(-3)) || pod.Status.QOSClass == "" {
		t.Errorf("status is %+v", pod.Status)
	}
	v.now = at(2)
	if again := statusOf(pod, v); !equality.Semantic.DeepEqual(again, pod.Status) {
		t.Errorf("status became %+v", again)
	}
	v.containers, v.done = sketch(t, "main:fail"), true
	for _, c := range statusOf(pod, v).Conditions {
		if c.Type == v1.PodReady && !c.LastTransitionTime.Time.Equal(at(2)) {
			t.Errorf("the condition has not moved: %+v", c)
		}
	}
}
