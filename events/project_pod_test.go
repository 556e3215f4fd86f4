package events_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
)

// TestWhenAPodFinished: of the evidence that a Pod carries, the best counts. Each case has all weaker evidence, too, so that it
// shows the order (upstream: TestGetFinishedTime).
func TestWhenAPodFinished(t *testing.T) {
	at := func(second int) metav1.Time {
		return metav1.Date(2026, 1, 1, 0, 0, second, 0, time.FixedZone("", 3600))
	}
	ended := func(name string, second int) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(second)}}}
	}
	ready := func(status corev1.ConditionStatus, since metav1.Time) []corev1.PodCondition {
		return []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: at(3)},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: since},
		}
	}
	lost := corev1.ContainerStatus{Name: "lost", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	runs := corev1.ContainerStatus{Name: "runs", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	const created, deleted, unready = 1, 20, 30
	for _, test := range []struct {
		name       string
		containers []corev1.ContainerStatus
		init       []corev1.ContainerStatus
		conditions []corev1.PodCondition
		deleting   bool
		want       int
	}{
		{name: "the last container ended", containers: []corev1.ContainerStatus{ended("a", 41), ended("b", 43), ended("c", 42)},
			conditions: ready(corev1.ConditionFalse, at(unready)), deleting: true, want: 43},
		{name: "a sidecar ended after it", containers: []corev1.ContainerStatus{ended("a", 41)}, init: []corev1.ContainerStatus{ended("sidecar", 44)},
			conditions: ready(corev1.ConditionFalse, at(unready)), deleting: true, want: 44},
		{name: "an init container is no sidecar", containers: []corev1.ContainerStatus{ended("a", 41)}, init: []corev1.ContainerStatus{ended("init", 44)},
			conditions: ready(corev1.ConditionFalse, at(unready)), deleting: true, want: 41},
		{name: "one container has not ended", containers: []corev1.ContainerStatus{ended("a", 41), runs},
			conditions: ready(corev1.ConditionFalse, at(unready)), deleting: true, want: unready},
		{name: "the kubelet has lost one container", containers: []corev1.ContainerStatus{ended("a", 41), lost},
			conditions: ready(corev1.ConditionFalse, at(unready)), deleting: true, want: unready},
		{name: "no container has run", conditions: ready(corev1.ConditionFalse, at(unready)), deleting: true, want: unready},
		{name: "it is still ready", conditions: ready(corev1.ConditionTrue, at(unready)), deleting: true, want: deleted - 5},
		{name: "since when it is not ready is unknown", conditions: ready(corev1.ConditionFalse, metav1.Time{}), deleting: true, want: deleted - 5},
		{name: "it carries nothing but its creation", want: created},
	} {
		t.Run(test.name, func(t *testing.T) {
			always := corev1.ContainerRestartPolicyAlways
			p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: test.containers,
				InitContainerStatuses: test.init, Conditions: test.conditions}}
			p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
			p.CreationTimestamp = at(created)
			if test.deleting {
				deletion := at(deleted)
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deletion, new(int64(5))
			}
			if got, want := events.ProjectPod(p).Finished, at(test.want).UTC(); got != want {
				t.Errorf("it finished at %v, want %v", got, want)
			}
		})
	}
}
