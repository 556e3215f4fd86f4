package sim

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
)

// live moves one Pod one step on, as the kubelet and the garbage collector do. It reports whether any Pod could move.
func (w *tenant) live() bool {
	names := w.api.podNames()
	w.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if p := w.api.pods[name]; w.collect(p) || w.liveOne(p) {
			return true
		}
	}
	return w.removeDeleted()
}

func (w *tenant) liveOne(p *pod) bool {
	switch {
	case p.Terminal():
		return false
	case p.Deleting && !w.calm && w.rand.IntN(w.timeout()) > 0:
		return false // within its grace period
	case p.Deleting:
		w.end(p, w.rand.IntN(4) == 0) // terminated; some still succeed
	case p.Phase == events.Pending && w.stuck(p):
		return false
	case p.Phase == events.Pending:
		w.trace("node     %s runs", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) {
			p.Phase, p.Scheduled, p.Ready, p.ReadySince, p.Waiting = events.Running, true, true, w.now, ""
		})
	case w.plan.slow && !w.calm && w.rand.IntN(w.timeout()) > 0:
		return false
	case w.retries(p) && w.rand.IntN(4) == 0:
		w.trace("node     %s restarts a container", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Restarts++ })
	default:
		w.end(p, w.rand.IntN(100) >= w.plan.failPercent)
	}
	return true
}

// timeout draws how long a Pod's work or its termination takes.
func (w *tenant) timeout() int {
	if w.plan.slow {
		return 12
	}
	return 4
}

func (w *tenant) retries(p *pod) bool {
	j := w.api.jobs[p.owner]
	return j != nil && j.RestartsInPlace
}

// stuck reports whether the Pod waits for an image. A node gets the image now and then, and always in calm weather if no pending
// deadline would replace the Pod.
func (w *tenant) stuck(p *pod) bool {
	if p.Waiting == "" {
		if w.calm || p.Scheduled || w.rand.IntN(100) >= w.plan.stuckPercent {
			return false
		}
		w.trace("node     %s cannot pull its image", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Scheduled, p.Waiting = true, "ImagePullBackOff" })
		return true
	}
	if j := w.api.jobs[p.owner]; w.plan.job.Options.PendingDeadlineSeconds == nil || p.Orphan || j != nil && !matches(j, p) {
		return !w.calm && w.rand.IntN(20) > 0
	}
	return w.rand.IntN(200) > 0
}

// end ends a Pod's containers.
func (w *tenant) end(p *pod, well bool) {
	phase, code := events.Failed, int32(0)
	if well {
		phase = events.Succeeded
	} else {
		code = w.exitCode(p)
	}
	w.trace("node     %s (%s) %s", p.Name, p.UID, phase)
	if !p.Held {
		w.truth.setUncertain(p.UID)
	}
	w.truth.ended(p, well, code)
	w.api.UpdatePod(p.Name, func(p *events.Pod) {
		p.Phase, p.Ready, p.Waiting, p.Finished = phase, false, "", w.now.Truncate(time.Second)
		p.End = &events.PodEnd{Node: "node", Start: p.Created, Container: &events.ContainerEnd{Name: "main", ExitCode: code}}
		if !well {
			p.Exits = []events.Exit{{Container: "main", Code: code}}
			if w.rand.IntN(3) == 0 { // no rule is about sidecars
				p.Exits = append(p.Exits, events.Exit{Container: "sidecar", Code: 1 + w.rand.Int32N(codes)})
			}
		}
	})
}

// killed is the exit code of a terminated container.
const killed = 137

// exitCode draws how a main container fails. In calm weather every failure counts, so that the Job ends.
func (w *tenant) exitCode(p *pod) int32 {
	if p.Deleting {
		return killed
	}
	code := 1 + w.rand.Int32N(codes)
	if w.calm && w.plan.fates[code] == batchv1.PodFailurePolicyActionIgnore {
		return killed
	}
	return code
}

// delete sets a deletion timestamp. An ended Pod without finalizers is removed at once.
func (w *tenant) delete(name string) {
	w.truth.of(w.api.pods[name].UID).deleted = true
	w.api.UpdatePod(name, func(*events.Pod) { w.api.markDeleted(w.api.pods[name]) })
}
