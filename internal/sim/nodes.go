package sim

import (
	"time"

	"github.com/jobstream/jobstream/events"
)

// live moves one Pod one step on, as the kubelet and the garbage collector do. It reports whether there was one to move.
func (w *World) live() bool {
	if w.frozen {
		return false
	}
	names := w.api.podNames()
	w.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		if w.liveOne(w.api.pods[name]) {
			return true
		}
	}
	return false
}

func (w *World) liveOne(p *pod) bool {
	orphan := w.api.jobs[p.owner] == nil
	switch {
	case p.Terminal() && p.Deleting && !p.Held:
		w.trace("node     %s removed", p.Name)
		w.api.removePod(p.Name)
	case orphan && !p.Deleting:
		w.trace("gc       %s deleted: its Job is gone", p.Name)
		w.delete(p.Name)
	case p.Terminal() && !p.Held && w.rand.IntN(4) == 0:
		w.trace("gc       %s collected", p.Name)
		w.delete(p.Name)
	case p.Terminal():
		return false
	case p.Deleting && !w.calm && w.rand.IntN(4) > 0:
		return false // its grace period
	case p.Deleting:
		w.end(p, w.rand.IntN(4) == 0) // told to end; some succeed yet
	case p.Phase == events.Pending:
		w.trace("node     %s runs", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) {
			p.Phase, p.Scheduled, p.Ready, p.ReadySince = events.Running, true, true, w.now
		})
	case w.retries(p) && w.rand.IntN(4) == 0:
		w.trace("node     %s restarts a container", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Restarts++ })
	default:
		w.end(p, w.rand.IntN(100) >= w.plan.failPercent)
	}
	return true
}

func (w *World) retries(p *pod) bool {
	j := w.api.jobs[p.owner]
	return j != nil && j.RestartsInPlace
}

// end lets a Pod's containers end.
func (w *World) end(p *pod, well bool) {
	phase := events.Failed
	if well {
		phase = events.Succeeded
	}
	w.trace("node     %s (%s) %s", p.Name, p.UID, phase)
	if !p.Held {
		w.truth.excuse(p.UID)
	}
	w.truth.ended(p.Pod, p.owner, well)
	w.api.UpdatePod(p.Name, func(p *events.Pod) {
		p.Phase, p.Ready, p.Finished = phase, false, w.now.Truncate(time.Second)
	})
}

// delete sets a deletion timestamp; a Pod that has ended and that nobody holds goes at once.
func (w *World) delete(name string) {
	w.api.UpdatePod(name, func(p *events.Pod) { p.Deleting, p.Finished = true, w.now.Truncate(time.Second) })
}

// strip takes the finalizer off a Pod.
func (w *World) strip(name string) {
	p := w.api.pods[name]
	w.trace("user     takes the finalizer off %s", name)
	if p.Terminal() || p.Deleting {
		w.truth.excuse(p.UID)
	}
	w.api.UpdatePod(name, func(p *events.Pod) { p.Held = false })
}

// meddle does what users do at the worst moment.
func (w *World) meddle() {
	names := w.api.podNames()
	uid := w.uid
	job := w.api.jobs[uid]
	switch n := w.rand.IntN(14); {
	case n < 4 && len(names) > 0:
		name := names[w.rand.IntN(len(names))]
		w.trace("user     deletes %s", name)
		w.delete(name)
	case n < 5 && len(names) > 0:
		p := w.api.pods[names[w.rand.IntN(len(names))]]
		w.trace("user     takes the finalizer off %s and deletes it by force", p.Name)
		w.truth.excuse(p.UID)
		w.truth.zombies++ // its name is free, and whoever has not heard of it makes it again
		p.Held = false
		w.api.removePod(p.Name)
	case n < 8 && len(names) > 0:
		w.strip(names[w.rand.IntN(len(names))])
	case n < 12 && job != nil && !job.Finished():
		to := int32(w.rand.IntN(6))
		w.trace("user     scales to parallelism %d", to)
		w.truth.scaled(to)
		w.api.UpdateJob(uid, func(j *events.Job) { j.Parallelism = to })
	case n < 13 && job != nil && w.rand.IntN(6) == 0:
		w.trace("user     deletes the Job")
		w.api.DeleteJob(uid)
	case job != nil:
		w.trace("user     touches the Job")
		w.api.UpdateJob(uid, func(*events.Job) {})
	}
}
