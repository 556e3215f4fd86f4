package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// PodPortrait is what is compared of a Pod.
type PodPortrait struct {
	Index                  string
	Name, GenerateName     string
	Labels, Annotations    map[string]string
	Finalizers, OwnedBy    []string
	Spec                   corev1.PodSpec
	Phase                  corev1.PodPhase
	Reason                 string
	Disruption             string
	Exits, Logs            map[string]string
	TerminatingAtPortrayal bool
}

func (s *Side) portrayPod(t testing.TB, pod *corev1.Pod, words func(string) string) PodPortrait {
	t.Helper()
	out := PodPortrait{
		Index: indexOf(pod), Name: words(pod.Name), GenerateName: words(pod.GenerateName), Labels: in(pod.Labels, words),
		Annotations: in(pod.Annotations, words), Finalizers: pod.Finalizers, Spec: within(pod.Spec, words),
		Phase: pod.Status.Phase, Reason: pod.Status.Reason, Exits: map[string]string{}, Logs: map[string]string{},
		TerminatingAtPortrayal: pod.DeletionTimestamp != nil,
	}
	for _, o := range owners(pod) {
		out.OwnedBy = append(out.OwnedBy, words(o))
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			out.Disruption = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	s.portrayContainers(t, pod, &out)
	return out
}

func (s *Side) portrayContainers(t testing.TB, pod *corev1.Pod, out *PodPortrait) {
	t.Helper()
	var sidecars []string
	for _, c := range pod.Spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			sidecars = append(sidecars, c.Name)
		}
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if c.State.Terminated == nil {
			out.Exits[c.Name] = "none"
			continue
		}
		out.Exits[c.Name] = fmt.Sprintf("%d %s, %d restarts", c.State.Terminated.ExitCode, c.State.Terminated.Reason, c.RestartCount)
		log, err := s.Client.CoreV1().Pods(s.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: c.Name}).DoRaw(t.Context())
		if err != nil {
			t.Error(err)
		}
		out.Logs[c.Name] = string(log)
		if slices.Contains(sidecars, c.Name) {
			out.Logs[c.Name] = sidecarLog(t, string(log))
		}
	}
}

// sidecarLog checks the log of "tail -F" and replaces it. How much of a file a sidecar has printed when its Pod ends, and its
// warnings about a file that does not exist yet, vary by milliseconds under any controller.
func sidecarLog(t testing.TB, log string) string {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "tail: ") && line != "logging\n" {
			t.Errorf("the sidecar has logged %q", line)
		}
	}
	return "of a sidecar"
}

// owners returns the Pod's owners, one a line.
func owners(p *corev1.Pod) (lines []string) {
	for _, o := range p.OwnerReferences {
		lines = append(lines, fmt.Sprintf("%s %s %s %s controller=%v blocks=%v", o.APIVersion, o.Kind, o.Name, o.UID,
			ptr.Deref(o.Controller, false), ptr.Deref(o.BlockOwnerDeletion, false)))
	}
	return lines
}

// held reports whether the Pod has the tracking finalizer.
func held(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) }
