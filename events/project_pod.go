package events

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// ProjectPod extracts what functions need of a Pod.
func ProjectPod(p *corev1.Pod) Pod {
	out := Pod{
		Name: p.Name, UID: p.UID,
		Version:   Version(p.ResourceVersion),
		Owner:     p.Labels[batchv1.JobNameLabel],
		Serial:    number(p.Annotations, v1alpha1.SerialAnnotation, NoSerial),
		Index:     number(p.Annotations, batchv1.JobCompletionIndexAnnotation, NoIndex),
		Phase:     PodPhase(p.Status.Phase),
		Held:      Held(p),
		Deleting:  p.DeletionTimestamp != nil,
		Scheduled: p.Spec.NodeName != "",
		Created:   p.CreationTimestamp.UTC(),

		IndexFailures:        int32(number(p.Annotations, batchv1.JobIndexFailureCountAnnotation, 0)),
		IndexIgnoredFailures: int32(number(p.Annotations, batchv1.JobIndexIgnoredFailureCountAnnotation, 0)),
	}
	if out.Phase == "" {
		out.Phase = Pending
	}
	if ref := metav1.GetControllerOf(p); ref != nil {
		out.Orphan = false
		if owner(ref) != "" {
			out.Owner = ref.Name
		}
		if p.Labels[batchv1.ControllerUidLabel] != string(ref.UID) {
			out.Labels = someLabels(p.Labels)
		}
	} else if out.Orphan = true; p.Labels[batchv1.ControllerUidLabel] == "" {
		out.Labels = someLabels(p.Labels)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			out.Ready, out.ReadySince = true, c.LastTransitionTime.UTC()
		}
	}
	restarts := int64(0)
	for _, cs := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range cs {
			restarts += int64(c.RestartCount)
		}
	}
	out.Restarts = count(restarts)
	if out.Terminal() || out.Deleting {
		out.Finished, out.End = finished(p), podEnd(p)
	}
	if out.Phase == Failed || out.Deleting {
		out.Exits, out.Conditions = exits(p), conditions(p)
	}
	if out.Phase == Pending {
		out.Waiting = waiting(p)
	}
	return out
}

// ForeignFinalizers returns, sorted, the finalizers that neither Kubernetes nor jobstream removes.
func ForeignFinalizers(all []string) (out []string) {
	for _, f := range all {
		if f != batchv1.JobTrackingFinalizer && f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	return out
}

// exits lists the failed containers, in the order in which a podFailurePolicy evaluates them.
func exits(p *corev1.Pod) (out []Exit) {
	for _, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 && len(out) < maxExits && len(c.Name) <= maxName {
			out = append(out, Exit{Container: c.Name, Code: t.ExitCode})
		}
	}
	return out
}

func conditions(p *corev1.Pod) (out []PodCondition) {
	for _, c := range p.Status.Conditions {
		if len(out) == maxConditions || len(c.Type) > maxConditionType {
			continue
		}
		out = append(out, PodCondition{Type: c.Type, Status: c.Status})
	}
	return out
}

// waiting returns the reason why a Pod does not start: the first container's, else the scheduler's. A Pod that is being deleted and that
// has not started waits for its finalizers; one that runs waits for its kubelet, and ends before they matter.
func waiting(p *corev1.Pod) string {
	if foreign := ForeignFinalizers(p.Finalizers); p.DeletionTimestamp != nil && len(foreign) > 0 && len(foreign[0]) <= maxFinalizer {
		return FinalizerPrefix + foreign[0]
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return word(w.Reason)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return word(c.Reason)
		}
	}
	return ""
}

// someLabels returns the first MaxLabels labels by key, never nil. A selector that needs a label beyond them does not match, so
// no Job adopts a Pod with hundreds of labels. A Job with a user's own selector is unsupported if its own Pods would have so
// many.
func someLabels(m map[string]string) map[string]string {
	if len(m) <= MaxLabels {
		return orEmpty(m)
	}
	out := make(map[string]string, MaxLabels)
	for _, key := range slices.Sorted(maps.Keys(m))[:MaxLabels] {
		out[key] = m[key]
	}
	return out
}

// Held reports whether the Pod carries the finalizer with which Jobs track their Pods.
func Held(p *corev1.Pod) bool {
	for _, f := range p.Finalizers {
		if f == batchv1.JobTrackingFinalizer {
			return true
		}
	}
	return false
}

// OwnerUID returns the UID of the Job that a Pod belongs to: its controller's if that is a batch/v1 Job; for an orphan the one in
// its generated label, because that Job may adopt it, or has to release it. "" means neither, or a UID that no Job can have. It
// identifies a Job only together with the Pod's namespace: a user may write the UID of another namespace's Job into a Pod.
func OwnerUID(p *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOf(p); ref != nil {
		if ref.Kind == "Job" && (ref.APIVersion == "batch/v1") {
			return owner(ref)
		}
		return ""
	}
	return types.UID(p.Labels[batchv1.ControllerUidLabel])
}

// finished returns when a Pod ended, by the best evidence it carries, in upstream's order (backoff_utils.go getFinishedTime): the
// latest end of a container, else when it stopped being ready, else its deletion less the grace period, else its creation.
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

// lastContainer returns when the last container or sidecar ended; zero while one still runs.
func lastContainer(p *corev1.Pod) (last time.Time) {
	sidecar := sidecars(p)
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

// podEnd describes the end of a Pod for subscribers.
func podEnd(p *corev1.Pod) *PodEnd {
	out := &PodEnd{Node: p.Spec.NodeName, Reason: word(p.Status.Reason), Container: deciding(p)}
	if p.Status.StartTime != nil {
		out.Start = p.Status.StartTime.UTC()
	}
	return out
}

// deciding returns the container that decided how the Pod ended: the first that failed, else the last app container to end.
// Sidecars do not count. A container that the kubelet has lost has ended without a time.
func deciding(p *corev1.Pod) *ContainerEnd {
	var failed, ended *corev1.ContainerStatus
	sidecar := sidecars(p)
	for i, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses) {
		t := c.State.Terminated
		switch {
		case t == nil || sidecar[c.Name]:
		case t.ExitCode != 0:
			if failed == nil || t.FinishedAt.Before(&failed.State.Terminated.FinishedAt) {
				failed = &c
			}
		case i < len(p.Status.ContainerStatuses) && (ended == nil || ended.State.Terminated.FinishedAt.Before(&t.FinishedAt)):
			ended = &c
		}
	}
	if failed == nil {
		failed = ended
	}
	if failed == nil {
		return nil
	}
	t := failed.State.Terminated
	return &ContainerEnd{Name: failed.Name, ExitCode: t.ExitCode, Reason: word(t.Reason)}
}

// sidecars returns the names of the init containers that run as long as the Pod.
func sidecars(p *corev1.Pod) map[string]bool {
	out := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		out[c.Name] = c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	return out
}

// word returns a reason in Kubernetes' form, such as OOMKilled; "" for anything else: a user who may write a Pod's status could
// put any text there.
func word(reason string) string {
	const most = 64
	letter := func(r rune) bool { return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	if len(reason) > most || strings.ContainsFunc(reason, func(r rune) bool { return !letter(r) }) {
		return ""
	}
	return reason
}
