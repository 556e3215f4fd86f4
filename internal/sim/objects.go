package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// The simulator keeps what matters of an object. Functions never see that: each observation is the object that an API server would
// hold, read by the projection that the trigger uses. So a projection that loses a field breaks worlds.

// claim is that of a trigger with default flags.
var claim = events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}

// observeJob returns the Job as the trigger observes it.
func observeJob(j events.Job) events.Job { return events.ProjectJob(jobObject(j), claim) }

// observePod returns the Pod as the trigger observes it. owner is the UID of the Job that the Pod's labels name.
func observePod(p events.Pod, owner types.UID) events.Pod {
	return events.ProjectPod(podObject(p, owner))
}

// jobObject returns the object of a Job, as the API server has defaulted it.
func jobObject(j events.Job) *batchv1.Job {
	out := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Name, UID: j.UID, Generation: j.Generation,
			ResourceVersion: strconv.FormatUint(j.Version, 10), CreationTimestamp: metav1.Time{Time: j.Created}, Annotations: jobAnnotations(j)},
		Spec: batchv1.JobSpec{
			Parallelism: &j.Parallelism, Completions: j.Completions, BackoffLimit: &j.BackoffLimit, Suspend: &j.Suspended,
			CompletionMode: new(batchv1.NonIndexedCompletion), PodReplacementPolicy: new(batchv1.TerminatingOrFailed), ManagedBy: new(v1alpha1.DefaultManagedBy),
			ActiveDeadlineSeconds: j.ActiveDeadlineSeconds, BackoffLimitPerIndex: j.BackoffLimitPerIndex, MaxFailedIndexes: j.MaxFailedIndexes,
			PodFailurePolicy: j.PodFailurePolicy, SuccessPolicy: j.SuccessPolicy, TTLSecondsAfterFinished: j.TTLSecondsAfterFinished,
			Selector: j.Selector,
		},
		Status: *j.Status.DeepCopy(),
	}
	if j.Foreign {
		out.Spec.ManagedBy = new("example.com/another")
	}
	if j.Indexed {
		out.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	}
	if len(j.Unsupported) > 0 {
		out.Spec.CompletionMode = new(batchv1.CompletionMode("OfTomorrow"))
	}
	if j.ReplaceFailedOnly {
		out.Spec.PodReplacementPolicy = new(batchv1.Failed)
	}
	if out.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever; j.RestartsInPlace {
		out.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	if j.Deleting {
		out.DeletionTimestamp = &metav1.Time{Time: j.Created}
	}
	if j.SuspendedBy != "" {
		out.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: j.SuspendedBy, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)}}
	}
	if j.Queue != "" {
		out.Labels = map[string]string{v1alpha1.QueueLabel: j.Queue}
	}
	if j.Selector == nil {
		out.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: string(j.UID)}}
	}
	return out
}

func jobAnnotations(j events.Job) map[string]string {
	out := map[string]string{}
	put := func(name string, set bool, value any) {
		if set {
			out[name] = fmt.Sprint(value)
		}
	}
	o := j.Options
	put(v1alpha1.BackoffSecondsAnnotation, o.BackoffSeconds != nil, or(o.BackoffSeconds))
	put(v1alpha1.FailedPodsLimitAnnotation, o.FailedPodsLimit != nil, or(o.FailedPodsLimit))
	put(v1alpha1.PendingDeadlineSecondsAnnotation, o.PendingDeadlineSeconds != nil, or(o.PendingDeadlineSeconds))
	put(v1alpha1.PerCompletionEnvAnnotation, o.Parameters != "", o.Parameters)
	put(v1alpha1.PublishFailedValuesAnnotation, o.PublishFailedValues, true)
	put(v1alpha1.PodTraceparentAnnotation, len(o.Ignored) > 0, "perhaps")
	put(v1alpha1.NextSerialAnnotation, j.NextSerial != 0, j.NextSerial)
	if !j.Backoff.Equal(events.Backoff{}) {
		record, _ := json.Marshal(j.Backoff) // cannot fail: a number and a time
		out[v1alpha1.BackoffAnnotation] = string(record)
	}
	if j.LastFailure != nil {
		record, _ := json.Marshal(j.LastFailure) // cannot fail: texts, numbers and a time
		out[v1alpha1.LastFailureAnnotation] = string(record)
	}
	if len(j.FailedIndexExits) > 0 {
		exits, _ := json.Marshal(j.FailedIndexExits) // cannot fail: numbers and texts
		out[v1alpha1.FailedIndexExitsAnnotation] = string(exits)
	}
	return out
}

// podObject returns the object of a Pod.
func podObject(p events.Pod, owner types.UID) *corev1.Pod {
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID, ResourceVersion: strconv.FormatUint(p.Version, 10),
			CreationTimestamp: metav1.Time{Time: p.Created}, Labels: maps.Clone(p.Labels), Annotations: podAnnotations(p)},
		Status: podStatus(p),
	}
	if out.Labels == nil {
		out.Labels = map[string]string{batchv1.ControllerUidLabel: string(owner)}
	}
	if p.Owner != "" {
		out.Labels[batchv1.JobNameLabel] = p.Owner
	}
	if !p.Orphan {
		out.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: p.Owner, UID: owner, Controller: new(true)}}
	}
	if p.Held {
		out.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
	if foreign, ok := strings.CutPrefix(p.Waiting, events.FinalizerPrefix); ok {
		out.Finalizers = append(out.Finalizers, foreign)
	}
	if p.Scheduled {
		out.Spec.NodeName = "node"
	}
	if p.Deleting {
		const grace = 30
		out.DeletionTimestamp, out.DeletionGracePeriodSeconds = &metav1.Time{Time: p.Finished.Add(grace * time.Second)}, new(int64(grace))
	}
	return out
}

func podAnnotations(p events.Pod) map[string]string {
	out := map[string]string{}
	put := func(name string, n, absent int) {
		if n != absent {
			out[name] = strconv.Itoa(n)
		}
	}
	put(v1alpha1.SerialAnnotation, p.Serial, events.NoSerial)
	put(batchv1.JobCompletionIndexAnnotation, p.Index, events.NoIndex)
	put(batchv1.JobIndexFailureCountAnnotation, int(p.IndexFailures), 0)
	put(batchv1.JobIndexIgnoredFailureCountAnnotation, int(p.IndexIgnoredFailures), 0)
	return out
}

// podStatus is what a scheduler and a kubelet have written.
func podStatus(p events.Pod) corev1.PodStatus {
	out := corev1.PodStatus{Phase: corev1.PodPhase(p.Phase)}
	main := corev1.ContainerStatus{Name: "main", RestartCount: p.Restarts}
	if p.Waiting != "" && !strings.HasPrefix(p.Waiting, events.FinalizerPrefix) {
		main.State.Waiting = &corev1.ContainerStateWaiting{Reason: p.Waiting}
	}
	if p.Ready {
		out.Conditions = append(out.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: p.ReadySince}})
	}
	for _, c := range p.Conditions {
		if c.Type == corev1.PodReady && p.Ready {
			continue
		}
		out.Conditions = append(out.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
	}
	if p.Terminal() {
		main.State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.Time{Time: p.Finished}}
	}
	out.ContainerStatuses = []corev1.ContainerStatus{main}
	for _, e := range p.Exits {
		ended := &corev1.ContainerStateTerminated{ExitCode: e.Code, FinishedAt: metav1.Time{Time: p.Finished}}
		if end := p.End; end != nil && end.Container != nil && end.Container.Name == e.Container {
			ended.Reason = end.Container.Reason
		}
		if e.Container == main.Name {
			out.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended}
			continue
		}
		out.ContainerStatuses = append(out.ContainerStatuses, corev1.ContainerStatus{Name: e.Container, State: corev1.ContainerState{Terminated: ended}})
	}
	return out
}
