package events_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// TestWhoHasSuspendedAJob: the queue of Kueue if it has one, else the field manager that owns spec.suspend, and neither while it is not
// suspended.
func TestWhoHasSuspendedAJob(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	const suspend, other = `{"f:spec":{"f:suspend":{}}}`, `{"f:spec":{"f:parallelism":{}}}`
	by := func(manager string, at *metav1.Time, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: at, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	for _, test := range []struct {
		name    string
		runs    bool
		queue   string
		fields  []metav1.ManagedFieldsEntry
		message string
	}{
		{name: "no field manager is known", message: "Job suspended"},
		{name: "one is", fields: []metav1.ManagedFieldsEntry{by("kubectl-create", &early, "", other), by("kubectl-patch", &early, "", suspend)}, message: "Job suspended by kubectl-patch"},
		{name: "the later of two", fields: []metav1.ManagedFieldsEntry{by("kubectl-edit", &late, "", suspend), by("kubectl-create", &early, "", suspend)}, message: "Job suspended by kubectl-edit"},
		{name: "the first of two that are as late", fields: []metav1.ManagedFieldsEntry{by("kubectl-edit", &late, "", suspend), by("kubectl-patch", &late, "", suspend)}, message: "Job suspended by kubectl-edit"},
		{name: "one without a time is older than one with", fields: []metav1.ManagedFieldsEntry{by("kubectl-edit", &early, "", suspend), by("another", nil, "", suspend)}, message: "Job suspended by kubectl-edit"},
		{name: "one with a time replaces one without", fields: []metav1.ManagedFieldsEntry{by("another", nil, "", suspend), by("kubectl-edit", &early, "", suspend)}, message: "Job suspended by kubectl-edit"},
		{name: "the status has no such field", fields: []metav1.ManagedFieldsEntry{by("another", &early, "status", suspend)}, message: "Job suspended"},
		{name: "a record without fields", fields: []metav1.ManagedFieldsEntry{{Manager: "another"}}, message: "Job suspended"},
		{name: "a record that cannot be read", fields: []metav1.ManagedFieldsEntry{by("another", nil, "", `{"f:spec":[]}`)}, message: "Job suspended"},
		{name: "a record that is too large", fields: []metav1.ManagedFieldsEntry{by("another", nil, "", strings.Repeat(" ", 1<<20)+suspend)}, message: "Job suspended"},
		{name: "the largest record", fields: []metav1.ManagedFieldsEntry{by("another", nil, "", suspend+strings.Repeat(" ", 1<<20-4-len(suspend)))} /* an encoded record has 4 bytes more */, message: "Job suspended by another"},
		{name: "the longest name", fields: []metav1.ManagedFieldsEntry{by(strings.Repeat("x", 128), nil, "", suspend)}, message: "Job suspended by " + strings.Repeat("x", 128)},
		{name: "the longest name of a queue", queue: strings.Repeat("q", 253), message: "Job suspended: it waits in the queue " + strings.Repeat("q", 253)},
		{name: "a queue's name that is too long", queue: strings.Repeat("q", 254), message: "Job suspended"},
		{name: "a name that is too long", fields: []metav1.ManagedFieldsEntry{by(strings.Repeat("x", 129), nil, "", suspend)}, message: "Job suspended"},
		{name: "a queue", queue: "gpus", fields: []metav1.ManagedFieldsEntry{by("kueue", &early, "", suspend)}, message: "Job suspended: it waits in the queue gpus"},
		{name: "it runs", runs: true, queue: "gpus", fields: []metav1.ManagedFieldsEntry{by("kubectl-patch", &early, "", suspend)}, message: "Job suspended"},
	} {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{ManagedFields: test.fields}, Spec: batchv1.JobSpec{Suspend: new(!test.runs)}}
		if test.queue != "" {
			j.Labels = map[string]string{v1alpha1.QueueLabel: test.queue}
		}
		p := events.ProjectJob(j, events.Claim{})
		if got := p.SuspendedMessage(); got != test.message {
			t.Errorf("%s: %q, want %q", test.name, got, test.message)
		}
		if test.runs && p.SuspendedBy+p.Queue != "" {
			t.Errorf("%s: the fact has %q, %q", test.name, p.SuspendedBy, p.Queue)
		}
	}
}

// TestWhyAPodDoesNotStart: the first container's reason, else the scheduler's; a Pod that is being deleted waits for a finalizer of
// another program, unless it has run.
func TestWhyAPodDoesNotStart(t *testing.T) {
	pulls := []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
	unschedulable := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}
	ours, gc := batchv1.JobTrackingFinalizer, metav1.FinalizerDeleteDependents
	for _, test := range []struct {
		name       string
		phase      corev1.PodPhase
		finalizers []string
		status     corev1.PodStatus
		deleting   bool
		want       string
	}{
		{name: "a container", status: corev1.PodStatus{ContainerStatuses: pulls, Conditions: unschedulable}, want: "ImagePullBackOff"},
		{name: "the scheduler", status: corev1.PodStatus{Conditions: unschedulable}, want: "Unschedulable"},
		{name: "the scheduler has found a node", status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: "Late"}}}},
		{name: "another condition is False", status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}}}},
		{name: "an init container", status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}, ContainerStatuses: pulls},
			want: "PodInitializing"},
		{name: "a container that waits for nothing in particular", status: corev1.PodStatus{ContainerStatuses: append([]corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}, pulls...)},
			want: "ImagePullBackOff"},
		{name: "nothing is known"},
		{name: "it runs", phase: corev1.PodRunning, status: corev1.PodStatus{Conditions: unschedulable}},
		{name: "deleted", deleting: true, finalizers: []string{gc, ours, "example.com/keep", "example.com/hold"}, status: corev1.PodStatus{Conditions: unschedulable},
			want: events.FinalizerPrefix + "example.com/hold"},
		{name: "deleted, with finalizers of Kubernetes and jobstream", deleting: true, finalizers: []string{gc, ours}},
		{name: "deleted, with the longest finalizer", deleting: true, finalizers: []string{strings.Repeat("x", 317)}, want: events.FinalizerPrefix + strings.Repeat("x", 317)},
		{name: "deleted, with a finalizer that no object can have", deleting: true, finalizers: []string{strings.Repeat("x", 318)}},
		{name: "deleted, and it has run", phase: corev1.PodRunning, deleting: true, finalizers: []string{"example.com/keep"}},
		{name: "not deleted", finalizers: []string{"example.com/keep"}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: test.finalizers}, Status: test.status}
		if p.Status.Phase = test.phase; test.phase == "" {
			p.Status.Phase = corev1.PodPending
		}
		if test.deleting {
			p.DeletionTimestamp = &metav1.Time{}
		}
		if got := events.ProjectPod(p).Waiting; got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
