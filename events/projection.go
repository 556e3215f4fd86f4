package events

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// ProjectJob takes from a Job what functions need. It expects an object that the API server has defaulted. managedBy is the
// value of spec.managedBy by which Jobs are ours.
func ProjectJob(j *batchv1.Job, managedBy string) Job {
	out := Job{
		Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		Version:         version(j.ResourceVersion),
		Foreign:         orDefault(j.Spec.ManagedBy, "") != managedBy,
		Deleting:        j.DeletionTimestamp != nil,
		Created:         j.CreationTimestamp.UTC(),
		Parallelism:     orDefault(j.Spec.Parallelism, 1),
		Completions:     j.Spec.Completions,
		Indexed:         j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion,
		BackoffLimit:    orDefault(j.Spec.BackoffLimit, 6),
		RestartsInPlace: j.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure,
		Unsupported:     unsupported(&j.Spec),
		Status:          *j.Status.DeepCopy(),
	}
	if p := j.Spec.PodReplacementPolicy; p != nil {
		out.ReplaceFailedOnly = *p == batchv1.Failed
	}
	if j.Status.StartTime == nil && len(j.Status.Conditions) == 0 {
		return out // never started: annotations can only have been copied from another Job
	}
	out.NextSerial = number(j.Annotations, v1alpha1.NextSerialAnnotation, 0)
	// A record that somebody has made unreadable delays nothing: the annotation is rewritten with the next status.
	_ = json.Unmarshal([]byte(j.Annotations[v1alpha1.BackoffAnnotation]), &out.Backoff)
	return out
}

// unsupported names what the spec asks for beyond this version, so that such a Job is refused and not run wrongly.
func unsupported(s *batchv1.JobSpec) (out []string) {
	add := func(asked bool, field string) {
		if asked {
			out = append(out, field)
		}
	}
	add(s.Suspend != nil && *s.Suspend, "spec.suspend")
	add(s.ActiveDeadlineSeconds != nil, "spec.activeDeadlineSeconds")
	add(s.PodFailurePolicy != nil, "spec.podFailurePolicy")
	add(s.SuccessPolicy != nil, "spec.successPolicy")
	add(s.BackoffLimitPerIndex != nil, "spec.backoffLimitPerIndex")
	add(s.ManualSelector != nil && *s.ManualSelector, "spec.manualSelector")
	return out
}

// ProjectPod takes from a Pod what functions need.
func ProjectPod(p *corev1.Pod) Pod {
	out := Pod{
		Name: p.Name, UID: p.UID,
		Version:   version(p.ResourceVersion),
		Owner:     p.Labels[batchv1.JobNameLabel],
		Serial:    number(p.Annotations, v1alpha1.SerialAnnotation, NoSerial),
		Index:     number(p.Annotations, batchv1.JobCompletionIndexAnnotation, NoIndex),
		Phase:     PodPhase(p.Status.Phase),
		Held:      Held(p),
		Deleting:  p.DeletionTimestamp != nil,
		Scheduled: p.Spec.NodeName != "",
		Created:   p.CreationTimestamp.UTC(),
	}
	if out.Phase == "" {
		out.Phase = Pending
	}
	if ref := metav1.GetControllerOf(p); ref != nil {
		out.Owner = ref.Name
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			out.Ready, out.ReadySince = true, c.LastTransitionTime.UTC()
		}
	}
	for _, cs := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range cs {
			out.Restarts += c.RestartCount
		}
	}
	if out.Terminal() || out.Deleting {
		out.Finished = finished(p)
	}
	return out
}

// Held says whether the Pod carries the finalizer by which Jobs track their Pods.
func Held(p *corev1.Pod) bool {
	for _, f := range p.Finalizers {
		if f == batchv1.JobTrackingFinalizer {
			return true
		}
	}
	return false
}

// OwnerUID is the UID of the Job that a Pod belongs to: its controller's if that is a batch/v1 Job; of an orphan that
// still carries our finalizer, the one that its label remembers, since somebody has to let it go. "" means neither.
func OwnerUID(p *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOf(p); ref != nil {
		if ref.Kind == "Job" && (ref.APIVersion == "batch/v1") {
			return ref.UID
		}
		return ""
	}
	if Held(p) {
		return types.UID(p.Labels[batchv1.ControllerUidLabel])
	}
	return ""
}

// finished is when a Pod ended, by the best evidence it carries, in upstream's order (backoff_utils.go getFinishedTime):
// the latest end of a container, else when it stopped being ready, else its deletion less the grace period, else its birth.
func finished(p *corev1.Pod) time.Time {
	if last := lastContainer(p); !last.IsZero() {
		return last.UTC()
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.UTC()
		}
	}
	if d := p.DeletionTimestamp; d != nil {
		grace := time.Duration(orDefault(p.DeletionGracePeriodSeconds, 0)) * time.Second
		return d.Add(-grace).UTC()
	}
	return p.CreationTimestamp.UTC()
}

// lastContainer is when the last container or sidecar ended; zero while one has not.
func lastContainer(p *corev1.Pod) (last time.Time) {
	sidecar := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		sidecar[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	for i, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		if i >= len(p.Status.ContainerStatuses) && !sidecar[c.Name] {
			continue
		}
		t := c.State.Terminated
		if t == nil || t.FinishedAt.IsZero() {
			return time.Time{}
		}
		if t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// version reads a resourceVersion. Kubernetes promises decimal numbers that grow (KEP-5504); 0 stands for one that is not.
func version(s string) uint64 {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// number reads a non-negative decimal annotation, or returns otherwise.
func number(annotations map[string]string, name string, otherwise int) int {
	n, err := strconv.Atoi(annotations[name])
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}

func orDefault[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
