package events_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
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

// TestReady: only the condition Ready says so, if it is True.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		name string
		of   corev1.PodCondition
		want bool
	}{
		{"True", corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}, true},
		{"False", corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}, false},
		{"its containers alone", corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, false},
	} {
		c.of.LastTransitionTime = metav1.Time{Time: at(3).In(time.FixedZone("", 3600))}
		got := events.ProjectPod(&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{c.of}}})
		if got.Ready != c.want || got.ReadySince.IsZero() == c.want || c.want && got.ReadySince != at(3) {
			t.Errorf("%s: ready %v since %v", c.name, got.Ready, got.ReadySince)
		}
	}
}

// TestPhases: what is known of a Pod's end and of what it waits for, by its phase.
func TestPhases(t *testing.T) {
	failed := []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}},
		{Name: "b", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	for _, c := range []struct {
		phase                           corev1.PodPhase
		deleting                        bool
		ended, evidence, waits, unready bool
	}{
		{phase: "", waits: true},
		{phase: corev1.PodPending, waits: true},
		{phase: corev1.PodPending, deleting: true, waits: true, ended: true, evidence: true},
		{phase: corev1.PodRunning},
		{phase: corev1.PodRunning, deleting: true, ended: true, evidence: true},
		{phase: corev1.PodUnknown},
		{phase: corev1.PodSucceeded, ended: true},
		{phase: corev1.PodSucceeded, deleting: true, ended: true, evidence: true},
		{phase: corev1.PodFailed, ended: true, evidence: true},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: at(1)}}, Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: failed,
			Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}
		if c.deleting {
			p.DeletionTimestamp = &metav1.Time{Time: at(5)}
		}
		got := events.ProjectPod(p)
		if (got.End != nil) != c.ended || got.Finished.IsZero() == c.ended || (len(got.Exits) == 1) != c.evidence || (len(got.Conditions) == 1) != c.evidence || (got.Waiting != "") != c.waits {
			t.Errorf("%q, deleting %v: %+v", c.phase, c.deleting, got)
		}
	}
}

// TestWhichLabelsAreNeeded: none if the generated label names the very owner; else those by which a selector decides.
func TestWhichLabelsAreNeeded(t *testing.T) {
	owner := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: uid, Controller: new(true)}}
	long := []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: strings.Repeat("n", 254), UID: uid, Controller: new(true)}}
	for _, c := range []struct {
		name    string
		owners  []metav1.OwnerReference
		of      string // the generated label
		orphan  bool
		labels  bool
		ownedBy string
	}{
		{"its owner's", owner, uid, false, false, "pi"},
		{"its owner has a selector of its own", owner, "", false, true, "pi"},
		{"of another Job", owner, "another", false, true, "pi"},
		{"the owner has a name that no object has", long, uid, false, false, "label"},
		{"an orphan of a Job", nil, uid, true, false, "label"},
		{"an orphan", nil, "", true, true, "label"},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: c.owners, Labels: map[string]string{batchv1.JobNameLabel: "label"}}}
		if c.of != "" {
			p.Labels[batchv1.ControllerUidLabel] = c.of
		}
		if got := events.ProjectPod(p); got.Orphan != c.orphan || (got.Labels != nil) != c.labels || got.Owner != c.ownedBy {
			t.Errorf("%s: orphan %v, labels %v, of %s", c.name, got.Orphan, got.Labels, got.Owner)
		}
	}
	if got := events.ProjectPod(&corev1.Pod{}).Labels; got == nil {
		t.Error("an orphan without labels looks like a Pod with its owner's label")
	}
}

// TestHowMuchOfAPodIsKept: as much as Pods usually have, and not more.
func TestHowMuchOfAPodIsKept(t *testing.T) {
	for _, c := range []struct{ have, labels, exits, conditions int }{
		{64, 64, 64, 64}, {65, 65, 65, 64}, {128, 128, 128, 64}, {129, 128, 128, 64},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
		for i := range c.have {
			p.Labels[fmt.Sprintf("l%03d", i)] = fmt.Sprint(i)
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprint(i),
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}})
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprint(i))})
		}
		got := events.ProjectPod(p)
		if len(got.Labels) != c.labels || len(got.Exits) != c.exits || len(got.Conditions) != c.conditions || got.Labels["l127"] != p.Labels["l127"] {
			t.Errorf("of %d each: %d labels, %d exits, %d conditions", c.have, len(got.Labels), len(got.Exits), len(got.Conditions))
		}
	}
}

// TestAConditionThatIsPassedOver: one whose type is too long hides none of those that follow.
func TestAConditionThatIsPassedOver(t *testing.T) {
	p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{
		{Type: corev1.PodConditionType(strings.Repeat("x", 318))}, {Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}
	if got := events.ProjectPod(p).Conditions; len(got) != 1 || got[0].Type != corev1.DisruptionTarget {
		t.Errorf("%v", got)
	}
}

// TestNamesThatNoObjectHas: a status may have any text, if its writer may write it.
func TestNamesThatNoObjectHas(t *testing.T) {
	for length, want := range map[int]int{253: 1, 254: 0} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: strings.Repeat("n", length),
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}}}
		if got := events.ProjectPod(p).Exits; len(got) != want {
			t.Errorf("the exit of a container with a name of %d bytes: %v", length, got)
		}
	}
	for length, want := range map[int]int{317: 1, 318: 0} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{{Type: corev1.PodConditionType(strings.Repeat("c", length))}}}}
		if got := events.ProjectPod(p).Conditions; len(got) != want {
			t.Errorf("a condition of %d bytes: %v", length, got)
		}
	}
	for _, c := range []struct {
		reason, want string
	}{
		{"OOMKilled", "OOMKilled"}, {"Error137", "Error137"}, {strings.Repeat("a", 64), strings.Repeat("a", 64)}, {strings.Repeat("a", 65), ""},
		{"two words", ""}, {"a_b", ""}, {"Größe", ""}, {"a\x7f", ""},
	} {
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: c.reason}}
		if got := events.ProjectPod(p).End.Reason; got != c.want {
			t.Errorf("the reason %q: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestRestarts: the sum of all containers, within the range of Kubernetes' counters.
func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		a, b, want int32
	}{{1, 2, 3}, {math.MaxInt32, 1, math.MaxInt32}, {-5, 1, 0}} {
		p := &corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{RestartCount: c.a}}, ContainerStatuses: []corev1.ContainerStatus{{RestartCount: c.b}}}}
		if got := events.ProjectPod(p).Restarts; got != c.want {
			t.Errorf("%d and %d: %d", c.a, c.b, got)
		}
	}
}

// TestSerialsAndIndexes: 0 is one, and what is none stands as -1 in facts and states.
func TestSerialsAndIndexes(t *testing.T) {
	for text, want := range map[string]int{"": -1, "0": 0, "1": 1, "2147483647": math.MaxInt32, "2147483648": -1, "-1": -1, "x": -1} {
		got := events.ProjectPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.SerialAnnotation: text, batchv1.JobCompletionIndexAnnotation: text}}})
		if got.Serial != want || got.Index != want {
			t.Errorf("%q: serial %d, index %d", text, got.Serial, got.Index)
		}
	}
}
