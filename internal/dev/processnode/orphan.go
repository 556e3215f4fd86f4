package processnode

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// orphan makes the Pod one that a former life of the node may have run: its processes have died with that node, or been
// killed at the start of this one. It is reported as failed and never run again, for nobody knows how far it got.
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

// recall takes over what the status says of a container.
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
