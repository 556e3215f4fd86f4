package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/finding"
)

// wait is what one Pod waits for.
type wait struct {
	check string
	level finding.Level
	// what is a sentence without the Pod's name: Pods with the same sentence are reported together.
	what string
	// advice is what to do; POD stands for the Pod's name.
	advice string
	since  time.Time
}

// Reasons of a waiting container, as the kubelet writes them (pkg/kubelet/images/types.go and pkg/kubelet/kuberuntime in Kubernetes).
var (
	imageReasons  = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
	configReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError", "PreStartHookError", "PostStartHookError"}
)

// starting is how long the scheduler and the kubelet may take without a sign before that is reported.
const starting = time.Minute

// waitOf returns what a Pod that is not being deleted waits for; ok is false if it runs or has ended.
func waitOf(p *corev1.Pod, events []corev1.Event, now time.Time) (w wait, ok bool) {
	switch {
	case ended(p):
		return wait{}, false
	case p.Spec.NodeName == "":
		return unscheduled(p, now), true
	}
	if w, ok := waitingContainer(p, events, now); ok {
		return w, true
	}
	since := scheduledAt(p)
	if p.Status.Phase == corev1.PodPending && now.Sub(since) > starting && len(p.Status.ContainerStatuses)+len(p.Status.InitContainerStatuses) == 0 {
		return wait{"kubelet", finding.Fail, fmt.Sprintf("the kubelet of the node %s has reported nothing about it", clean(p.Spec.NodeName)),
			"look at the node with: kubectl describe node " + argument(p.Spec.NodeName), since}, true
	}
	return wait{}, false
}

// unscheduled returns why a Pod has no node.
func unscheduled(p *corev1.Pod, now time.Time) wait {
	created := p.CreationTimestamp.Time
	c := podCondition(p, corev1.PodScheduled)
	switch {
	case len(p.Spec.SchedulingGates) > 0:
		var gates []string
		for _, g := range p.Spec.SchedulingGates {
			gates = append(gates, g.Name)
		}
		return wait{"scheduling gate", finding.Fail, "no scheduler looks for a node before the scheduling gate is removed: " + clean(strings.Join(gates, ", ")),
			"let the program that has set the gate remove it", created}
	case c != nil && c.Status == corev1.ConditionFalse:
		return wait{"unschedulable", finding.Fail, fmt.Sprintf("the scheduler finds no node: %s: %s", clean(c.Reason), clean(c.Message)),
			"make room or add a node; requests, node selectors, affinities and tolerations of the template decide which nodes suit: kubectl describe pod POD", cmp.Or(c.LastTransitionTime.Time, created)}
	case now.Sub(created) > starting:
		return wait{"scheduler", finding.Fail, fmt.Sprintf("no scheduler has looked at it: spec.schedulerName is %q", clean(p.Spec.SchedulerName)),
			"look whether that scheduler runs, or leave schedulerName out of the template", created}
	}
	return wait{"scheduling", finding.Warn, "it waits for the scheduler", "ask again in a few seconds", created}
}

// waitingContainer returns what the first container waits for that does not run.
func waitingContainer(p *corev1.Pod, events []corev1.Event, now time.Time) (wait, bool) {
	since := scheduledAt(p)
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		s := c.State.Waiting
		if s == nil {
			continue
		}
		why, container := clean(s.Reason)+colon(clean(s.Message)), clean(c.Name)
		switch {
		case slices.Contains(imageReasons, s.Reason):
			return wait{"image pull", finding.Fail, fmt.Sprintf("the image %s of the container %s cannot be pulled: %s", clean(c.Image), container, why),
				"correct the image in the template, or its imagePullSecrets, or let the node reach the registry: kubectl describe pod POD", since}, true
		case slices.Contains(configReasons, s.Reason):
			return wait{"container", finding.Fail, fmt.Sprintf("the container %s cannot be created: %s", container, why),
				"create what it refers to, such as a Secret or a ConfigMap, or correct the template: kubectl describe pod POD", since}, true
		case s.Reason == "CrashLoopBackOff":
			return crashLoop(c, since), true
		case initialising(p): // the containers wait for the init container that runs
			return wait{}, false
		}
		if e, n := newest(events, string(p.UID)); n > 0 && now.Sub(lastSeen(e)) < starting*5 {
			return wait{"container start", finding.Fail, fmt.Sprintf("the container %s does not start: %s: %s", container, clean(e.Reason), clean(e.Message)),
				"a volume, the network of the node, or what the Event names is missing: kubectl describe pod POD", since}, true
		}
		if now.Sub(since) > starting {
			return wait{"container start", finding.Warn, fmt.Sprintf("the container %s has not started: %s", container, why), "see the Events of the Pod: kubectl describe pod POD", since}, true
		}
		return wait{"container start", finding.Warn, fmt.Sprintf("the container %s is being started: %s", container, why), "ask again in a few seconds", since}, true
	}
	return wait{}, false
}

// crashLoop describes a container that the kubelet restarts with a delay.
func crashLoop(c corev1.ContainerStatus, since time.Time) wait {
	how, advice := "", "see its output with: kubectl logs POD -c "+argument(c.Name)+" --previous"
	if t := c.LastTerminationState.Terminated; t != nil {
		how = fmt.Sprintf(", the last time with exit code %d", t.ExitCode) + colon(clean(t.Reason))
		since = cmp.Or(t.FinishedAt.Time, since)
		if t.Reason == "OOMKilled" {
			advice = "raise its memory limit; " + advice
		}
	}
	return wait{"container restarts", finding.Fail, fmt.Sprintf("the container %s fails again and again%s; the kubelet waits before it restarts it", clean(c.Name), how),
		advice, since}
}

// initialising reports whether an init container of the Pod runs.
func initialising(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil && c.State.Waiting == nil })
}

// Unexplained returns the Pod whose Events are worth reading: the oldest that has a node and whose status does not show what it waits
// for; "" if there is none. A kubelet reports volumes and networks in Events only.
func Unexplained(pods []corev1.Pod) (uid types.UID) {
	var oldest time.Time
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodPending || p.Spec.NodeName == "" || p.DeletionTimestamp != nil || initialising(p) {
			continue
		}
		explained := slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
			return c.State.Waiting != nil && slices.Contains(slices.Concat(imageReasons, configReasons, []string{"CrashLoopBackOff"}), c.State.Waiting.Reason)
		})
		if at := scheduledAt(p); !explained && (uid == "" || at.Before(oldest)) {
			uid, oldest = p.UID, at
		}
	}
	return uid
}

// scheduledAt returns since when the Pod has had a node.
func scheduledAt(p *corev1.Pod) time.Time {
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.CreationTimestamp.Time
}

func podCondition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// colon puts a colon before a text, if there is one.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
