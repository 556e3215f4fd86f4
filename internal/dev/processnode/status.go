package processnode

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view has all inputs of a Pod's status.
type view struct {
	containers []container
	stop       stopOrder
	done       bool      // no container runs and none will
	started    time.Time // when the node took the Pod
	ip         string
	now        time.Time
}

// statusOf returns the status of a Pod as the kubelet would. What other clients have written into the status (the scheduler, or a
// DisruptionTarget condition before an eviction) stays.
func statusOf(pod *v1.Pod, v view) v1.PodStatus {
	s := *pod.Status.DeepCopy()
	s.ObservedGeneration = pod.Generation
	s.Phase = phaseOf(v)
	if v.done && s.Phase == v1.PodFailed && v.stop.reason != "" {
		s.Reason, s.Message = v.stop.reason, v.stop.message
	}
	started := stamp(v.started)
	s.StartTime = &started
	s.HostIP, s.HostIPs = v.ip, []v1.HostIP{{IP: v.ip}}
	s.PodIP, s.PodIPs = v.ip, []v1.PodIP{{IP: v.ip}}
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for i := range v.containers {
		c := &v.containers[i]
		if c.role == mainRole {
			s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(c, v))
		} else {
			s.InitContainerStatuses = append(s.InitContainerStatuses, containerStatus(c, v))
		}
	}
	setConditions(&s, pod, v)
	return s
}

// phaseOf sums the containers up. A phase is terminal only when nothing runs any more.
func phaseOf(v view) v1.PodPhase {
	initialized, failed, pending := true, false, false
	for i := range v.containers {
		c := &v.containers[i]
		switch c.role {
		case initRole:
			initialized = initialized && c.succeeded()
			failed = failed || c.failed()
		case sidecarRole:
			initialized = initialized && c.everStarted()
		case mainRole:
			pending = pending || !c.everStarted()
			failed = failed || c.exit == nil || c.exit.code != 0
		}
	}
	switch {
	case v.done && (failed || !initialized || v.stop.reason != ""):
		return v1.PodFailed
	case v.done:
		return v1.PodSucceeded
	case !initialized || pending:
		return v1.PodPending
	}
	return v1.PodRunning
}

// initialized reports whether the main containers have been reached: all before them have succeeded or, if sidecars, have
// started.
func initialized(cs []container) bool {
	for i := range cs {
		if c := &cs[i]; c.role == initRole && !c.succeeded() || c.role == sidecarRole && !c.everStarted() {
			return false
		}
	}
	return true
}

func containerStatus(c *container, v view) v1.ContainerStatus {
	up := c.stage == running
	s := v1.ContainerStatus{
		Name: c.name, Image: c.spec.Image, RestartCount: max(0, c.runs-1),
		Started: &up, Ready: up, ContainerID: c.id,
	}
	if c.role == initRole {
		s.Ready = c.succeeded()
	}
	ending := v.done || v.stop.given()
	switch {
	case up:
		s.State.Running = &v1.ContainerStateRunning{StartedAt: stamp(c.started)}
		s.LastTerminationState.Terminated = terminated(c.exit)
	case c.stage == exited && c.again && !ending:
		s.State.Waiting = &v1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
		s.LastTerminationState.Terminated = terminated(c.exit)
		s.ContainerID = c.exit.id
	case c.stage == exited:
		s.State.Terminated = terminated(c.exit)
		s.LastTerminationState.Terminated = terminated(c.prior)
		s.ContainerID = c.exit.id
	case v.done && c.role == mainRole && initialized(v.containers):
		// As in the kubelet, a container that should have run and is missing is a failure, not an endless wait.
		s.State.Terminated = &v1.ContainerStateTerminated{
			ExitCode: 137, Reason: "ContainerStatusUnknown",
			Message: "The container could not be located when the pod was terminated",
		}
	default:
		s.State.Waiting = &v1.ContainerStateWaiting{Reason: c.reason, Message: c.message}
	}
	return s
}

func terminated(e *exit) *v1.ContainerStateTerminated {
	if e == nil {
		return nil
	}
	return &v1.ContainerStateTerminated{
		ExitCode: e.code, Signal: e.signal, Reason: e.reason, Message: e.message,
		StartedAt: stamp(e.started), FinishedAt: stamp(e.finished), ContainerID: e.id,
	}
}

// setConditions writes the five conditions that a kubelet owns.
func setConditions(s *v1.PodStatus, pod *v1.Pod, v view) {
	ready, reason, message := v1.ConditionTrue, "", ""
	if unready := unreadyContainers(v.containers); len(unready) > 0 {
		ready, reason = v1.ConditionFalse, "ContainersNotReady"
		message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	}
	switch s.Phase {
	case v1.PodSucceeded:
		ready, reason, message = v1.ConditionFalse, "PodCompleted", ""
	case v1.PodFailed:
		ready, reason, message = v1.ConditionFalse, "PodFailed", ""
	}
	init := v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue}
	if s.Phase == v1.PodSucceeded {
		init.Reason = "PodCompleted"
	} else if !initialized(v.containers) {
		init.Status, init.Reason = v1.ConditionFalse, "ContainersNotInitialized"
	}
	sandbox := v1.ConditionTrue
	if v.done {
		sandbox = v1.ConditionFalse
	}
	for _, c := range []v1.PodCondition{
		{Type: v1.PodReadyToStartContainers, Status: sandbox},
		init,
		{Type: v1.PodReady, Status: ready, Reason: reason, Message: message},
		{Type: v1.ContainersReady, Status: ready, Reason: reason, Message: message},
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	} {
		c.ObservedGeneration = pod.Generation
		setCondition(s, c, v.now)
	}
}

// setCondition replaces the condition of the same type; the time of the last transition stays while the status does.
func setCondition(s *v1.PodStatus, c v1.PodCondition, now time.Time) {
	c.LastTransitionTime = stamp(now)
	for i := range s.Conditions {
		old := &s.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		c.LastProbeTime = old.LastProbeTime
		*old = c
		return
	}
	s.Conditions = append(s.Conditions, c)
}

func unreadyContainers(cs []container) []string {
	var names []string
	for i := range cs {
		if cs[i].role != initRole && cs[i].stage != running {
			names = append(names, cs[i].name)
		}
	}
	return names
}

// stamp cuts a time to what the API keeps, so that a status equals itself after a round trip.
func stamp(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
