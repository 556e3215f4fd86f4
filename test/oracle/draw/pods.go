package draw

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/pod"
)

// MaxPods is the largest number of Pods that Pods draws.
const MaxPods = 8

var podConditions = []corev1.PodConditionType{corev1.DisruptionTarget, corev1.PodReady, "ConfigIssue"}
var conditionStatuses = []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}

// Pods draws Pods of the Job, created by jobstream, in any state. Each has a UID, a serial and a resourceVersion of its own.
func Pods(t *rapid.T, j *batchv1.Job) (out []*corev1.Pod) {
	for i := range rapid.IntRange(0, MaxPods).Draw(t, "pods") {
		if p := Pod(t, j, i); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Pod draws the i-th Pod of the Job; nil if the drawn Pod cannot exist.
func Pod(t *rapid.T, j *batchv1.Job, i int) *corev1.Pod {
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodFailed}
	p := drawPod(t, j, i, rapid.SampledFrom(phases).Draw(t, "phase"), chance(t, 5, "deleted"))
	if p.DeletionTimestamp != nil && len(p.Finalizers) == 0 && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) {
		return nil // without a finalizer it is removed
	}
	return p
}

// ForeignPods changes some of the Pods as a user might: without a serial, without an owner, with other labels.
func ForeignPods(t *rapid.T, pods []*corev1.Pod) {
	for _, p := range pods {
		switch rapid.IntRange(0, 14).Draw(t, "meddled") {
		case 11:
			delete(p.Annotations, v1alpha1.SerialAnnotation)
		case 12:
			delete(p.Annotations, v1alpha1.SerialAnnotation)
			p.OwnerReferences = nil
		case 13:
			p.OwnerReferences = nil
		case 14:
			delete(p.Labels, batchv1.ControllerUidLabel)
			p.Labels["app"] = "other"
		}
	}
}

// ActivePod draws the i-th Pod of the Job: it has not ended, and is not deleted.
func ActivePod(t *rapid.T, j *batchv1.Job, i int) *corev1.Pod {
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodUnknown}
	return drawPod(t, j, i, rapid.SampledFrom(phases).Draw(t, "phase"), false)
}

func drawPod(t *rapid.T, j *batchv1.Job, i int, phase corev1.PodPhase, deleted bool) *corev1.Pod {
	created := moment(t, "created")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, UID: PodUID(i), ResourceVersion: strconv.Itoa(2000 + i), CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{v1alpha1.ManagedLabel: "true"}, Annotations: map[string]string{v1alpha1.SerialAnnotation: strconv.Itoa(i)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *j.Spec.Template.Spec.DeepCopy(),
	}
	for k, v := range j.Spec.Template.Labels {
		p.Labels[k] = v
	}
	if !chance(t, 6, "not held") {
		p.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
	ordinal := indexed(t, j, p)
	p.Name = pod.Name(j.Name, j.UID, i, ordinal)
	if p.Status.Phase = phase; phase != corev1.PodPending || rapid.Bool().Draw(t, "scheduled") {
		p.Spec.NodeName = "node"
	}
	if deleted {
		grace := int64(5 * rapid.IntRange(0, 6).Draw(t, "grace"))
		p.DeletionGracePeriodSeconds = &grace
		p.DeletionTimestamp = new(metav1.NewTime(after(t, p, "deletion").Add(time.Duration(grace) * time.Second)))
	}
	live(t, p)
	return p
}

// indexed gives the Pod of an Indexed Job its index and, with backoffLimitPerIndex, the index's failures.
func indexed(t *rapid.T, j *batchv1.Job, p *corev1.Pod) int {
	if *j.Spec.CompletionMode != batchv1.IndexedCompletion {
		return -1
	}
	index := rapid.IntRange(0, int(*j.Spec.Completions)).Draw(t, "index") // the last one is out of range
	p.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	if j.Spec.BackoffLimitPerIndex == nil {
		return index
	}
	failures := rapid.IntRange(0, int(*j.Spec.BackoffLimitPerIndex)).Draw(t, "index failures")
	p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(failures)
	if j.Spec.PodFailurePolicy != nil && chance(t, 3, "ignored failures") {
		p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(rapid.IntRange(1, 2).Draw(t, "ignored"))
	}
	return index
}

// live draws the kubelet's status of the Pod.
func live(t *rapid.T, p *corev1.Pod) {
	switch p.Status.Phase {
	case corev1.PodRunning:
		if rapid.Bool().Draw(t, "ready") {
			ready(p, corev1.ConditionTrue, after(t, p, "ready"))
		}
	case corev1.PodSucceeded, corev1.PodFailed:
		if !chance(t, 5, "no ready condition") {
			ready(p, corev1.ConditionFalse, after(t, p, "unready"))
		}
	}
	if p.Status.Phase != corev1.PodPending && !chance(t, 6, "no container statuses") {
		containers(t, p)
	}
	if chance(t, 4, "disrupted") {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
			Status: rapid.SampledFrom(conditionStatuses).Draw(t, "disruption")})
	}
}

func ready(p *corev1.Pod, status corev1.ConditionStatus, at time.Time) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(at)})
}

// containers draws statuses that fit the phase.
func containers(t *rapid.T, p *corev1.Pod) {
	status := func(name string) corev1.ContainerStatus {
		c := corev1.ContainerStatus{Name: name, RestartCount: 0}
		if p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && p.Status.Phase == corev1.PodRunning {
			c.RestartCount = number(t, 0, 2, "restarts")
		}
		ended := p.Status.Phase != corev1.PodRunning && !chance(t, 12, fmt.Sprintf("%s goes on", name))
		if !ended {
			c.State.Running = &corev1.ContainerStateRunning{}
			return c
		}
		c.State.Terminated = &corev1.ContainerStateTerminated{}
		if !chance(t, 12, "no end") {
			c.State.Terminated.FinishedAt = metav1.NewTime(after(t, p, name))
		}
		if p.Status.Phase == corev1.PodFailed {
			c.State.Terminated.ExitCode = number(t, -1, 4, "exit code")
		}
		return c
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status(c.Name))
	}
	for _, c := range p.Spec.InitContainers {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, status(c.Name))
	}
}

// after draws a time in the life of the Pod.
func after(t *rapid.T, p *corev1.Pod, label string) time.Time {
	return latest(moment(t, label), p.CreationTimestamp.Time)
}
