package processnode

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// orphan marks the Pod as one that a former run of the node may have started: its processes died with that node, or were killed
// at the start of this one. The node reports it as failed and never runs it again, because its progress is unknown.
func (p *pod) orphan(now time.Time) {
	lost := false
	all := append(append([]v1.ContainerStatus{}, p.object.Status.InitContainerStatuses...), p.object.Status.ContainerStatuses...)
	for i := range p.containers {
		c := &p.containers[i]
		c.reason = "NodeRestarted"
		for _, s := range all {
			if s.Name == c.name {
				c.recall(s, now)
			}
		}
		lost = lost || c.role == mainRole && (c.stage != exited || c.exit.reason == statusUnknown)
	}
	p.stop = stopOrder{at: now}
	if lost {
		p.stop.reason = "NodeRestarted"
		p.stop.message = "The node was restarted: what the pod's containers did is not known, and they are not run again"
	}
	p.report.mark(now)
}

// statusUnknown is the kubelet's reason for a container that it has lost.
const statusUnknown = "ContainerStatusUnknown"

// recall restores the state of a container from the Pod's status.
func (c *container) recall(s v1.ContainerStatus, now time.Time) {
	c.runs = s.RestartCount + 1
	c.id = s.ContainerID
	switch {
	case s.State.Terminated != nil:
		t := s.State.Terminated
		c.stage, c.exit = exited, &exit{
			code: t.ExitCode, signal: t.Signal, reason: t.Reason, message: t.Message,
			started: t.StartedAt.Time, finished: t.FinishedAt.Time, id: t.ContainerID,
		}
	case s.State.Running != nil || s.LastTerminationState.Terminated != nil:
		e := &exit{
			code: 137, reason: statusUnknown, finished: now, id: s.ContainerID,
			message: "The container could not be located when the node was restarted",
		}
		if s.State.Running != nil {
			e.started = s.State.Running.StartedAt.Time
		}
		c.stage, c.exit = exited, e
	}
}
