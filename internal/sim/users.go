package sim

import (
	"fmt"
	"time"

	"github.com/jobstream/jobstream/events"
)

// mischief is what a user does at the worst moment. do reports whether it was possible.
type mischief struct {
	weight int
	of     feature // "" for any world
	do     func(*tenant) bool
}

// mischiefs are all that users do.
var mischiefs []mischief

func init() { // here, to avoid an initialization cycle
	mischiefs = []mischief{
		{8, "", (*tenant).deletePod},
		{2, "", (*tenant).forceDelete},
		{6, "", (*tenant).strip},
		{8, "", (*tenant).scale},
		{1, "", (*tenant).deleteJob},
		{3, "", (*tenant).touch},
		{8, suspending, (*tenant).suspend},
		{6, deadline, (*tenant).editDeadline},
		{12, policed, (*tenant).evict},
		{2, perIndex, (*tenant).evict},
		{6, adopting, (*tenant).orphan},
		{3, adopting, (*tenant).ownAgain},
		{3, adopting, (*tenant).relabel},
		{3, adopting, (*tenant).labelAgain},
		{12, adopting, (*tenant).addForeignPod},
		{20, adopting, (*tenant).copyPod},
		{4, unstamped, (*tenant).spoilSerial},
		{1, declaring, (*tenant).declareFailed},
		{4, declaring, (*tenant).addCondition},
		{12, declaring, (*tenant).holdAgain},
		{8, parameters, (*tenant).editValues},
		{3, parameters, (*tenant).renameValues},
		{6, keeping, (*tenant).editLimit},
		{4, deleting, (*tenant).leaveJob},
	}
}

// meddle does one of them.
func (w *tenant) meddle() {
	total := 0
	for _, m := range mischiefs {
		if m.of == "" || w.has(m.of) {
			total += m.weight
		}
	}
	n := w.rand.IntN(total)
	for _, m := range mischiefs {
		if m.of != "" && !w.has(m.of) {
			continue
		}
		if n -= m.weight; n < 0 {
			if !m.do(w) {
				w.touch()
			}
			return
		}
	}
}

// anyPod draws a Pod for which of returns true; nil if there is none.
func (w *tenant) anyPod(of func(*pod) bool) *pod {
	var out []*pod
	for _, name := range w.api.podNames() {
		if p := w.api.pods[name]; of(p) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[w.rand.IntN(len(out))]
}

func (w *tenant) deletePod() bool {
	p := w.anyPod(func(*pod) bool { return true })
	if p == nil {
		return false
	}
	w.trace("user     deletes %s", p.Name)
	w.delete(p.Name)
	return true
}

func (w *tenant) forceDelete() bool {
	p := w.anyPod(func(*pod) bool { return true })
	if p == nil {
		return false
	}
	w.trace("user     removes the finalizer from %s and deletes it by force", p.Name)
	w.truth.setUncertain(p.UID)
	w.truth.zombies++ // its name is free, and a worker that has not observed the deletion creates it again
	p.Held = false
	w.api.removePod(p.Name)
	return true
}

func (w *tenant) strip() bool {
	p := w.anyPod(func(*pod) bool { return true })
	if p == nil {
		return false
	}
	w.trace("user     removes the finalizer from %s", p.Name)
	w.lose(p)
	return true
}

// evict deletes a Pod as a drained node does, with a condition that names the reason.
func (w *tenant) evict() bool {
	p := w.anyPod(func(p *pod) bool { return !p.Terminal() && !p.Deleting })
	if p == nil {
		return false
	}
	w.trace("user     evicts %s", p.Name)
	w.truth.of(p.UID).evicted = true
	p.Conditions = []events.PodCondition{{Type: "DisruptionTarget", Status: "True"}}
	w.delete(p.Name)
	return true
}

// orphan removes a Pod from its Job.
func (w *tenant) orphan() bool {
	p := w.anyPod(func(p *pod) bool { return !p.Orphan })
	if p == nil {
		return false
	}
	w.trace("user     orphans %s", p.Name)
	w.truth.guest(p)
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Orphan = true })
	return true
}

// ownAgain gives an orphan back to its former Job.
func (w *tenant) ownAgain() bool {
	p := w.anyPod(func(p *pod) bool { return p.Orphan && p.managed && w.api.jobs[p.owner] != nil })
	if p == nil {
		return false
	}
	w.trace("user     gives %s back", p.Name)
	w.truth.guest(p)
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Orphan = false })
	return true
}

// relabel changes the labels of a Pod so that no selector matches it.
func (w *tenant) relabel() bool {
	p := w.anyPod(func(p *pod) bool { return p.Labels == nil || p.Labels["app"] == "pi" })
	if p == nil {
		return false
	}
	w.trace("user     changes the labels of %s", p.Name)
	w.truth.guest(p)
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Labels = map[string]string{"app": "other"} })
	return true
}

// labelAgain makes a Pod match again.
func (w *tenant) labelAgain() bool {
	p := w.anyPod(func(p *pod) bool { return p.Labels["app"] == "other" && p.owner != "" })
	if p == nil {
		return false
	}
	w.trace("user     restores the labels of %s", p.Name)
	w.truth.guest(p)
	w.api.UpdatePod(p.Name, func(q *events.Pod) {
		if q.Labels = nil; w.plan.job.Selector != nil {
			q.Labels = w.plan.job.Selector.MatchLabels
		}
	})
	return true
}

// addForeignPod creates a Pod that the Job's own selector matches, in any phase and, for an Indexed Job, with any index.
func (w *tenant) addForeignPod() bool {
	if w.plan.job.Selector == nil {
		return false
	}
	w.foreignPods++
	p := events.Pod{Name: fmt.Sprintf("foreign-%d", w.foreignPods), Serial: events.NoSerial, Index: w.rand.IntN(6) - 1, Phase: events.Pending,
		Labels: w.plan.job.Selector.MatchLabels}
	if !w.plan.job.Indexed {
		p.Index = events.NoIndex
	}
	if w.rand.IntN(3) == 0 {
		p.Phase, p.Scheduled, p.Finished = events.Succeeded, true, w.now.Truncate(time.Second)
	}
	w.trace("user     creates %s, which the Job's selector matches: %s", p.Name, p.Phase)
	p = w.api.AddPod("", p)
	x := w.api.pods[p.Name]
	w.truth.guest(x)
	if p.Terminal() {
		w.truth.ended(x, true, 0)
	}
	return true
}

// copyPod creates a Pod from the manifest of a running one: the same serial, index and finalizer, another name.
func (w *tenant) copyPod() bool {
	p := w.anyPod(func(p *pod) bool { return p.owner == w.uid && !p.Orphan && !p.Terminal() && !p.Deleting && p.managed })
	if p == nil || w.api.jobs[w.uid] == nil {
		return false
	}
	w.foreignPods++
	twin := p.Pod
	twin.Name, twin.Phase, twin.Scheduled, twin.Ready, twin.Restarts, twin.Waiting = fmt.Sprintf("copy-%d", w.foreignPods), events.Pending, false, false, 0, ""
	w.trace("user     creates %s, a copy of %s", twin.Name, p.Name)
	twin = w.api.AddPod(w.uid, twin)
	w.truth.made(twin, w.uid)
	w.truth.guest(w.api.pods[twin.Name])
	w.truth.zombies++ // once the other one is counted, it looks like a zombie
	return true
}

// spoilSerial removes or edits the annotation that identifies a Pod. Small numbers are the serials of other Pods.
func (w *tenant) spoilSerial() bool {
	p := w.anyPod(func(p *pod) bool { return !p.Orphan && p.Serial != events.NoSerial })
	if p == nil {
		return false
	}
	serial := events.NoSerial
	if w.rand.IntN(2) == 0 {
		serial = w.rand.IntN(12)
	}
	w.trace("user     changes the serial of %s from %d to %d", p.Name, p.Serial, serial)
	w.truth.guest(p)
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Serial = serial })
	return true
}

// holdAgain adds the tracking finalizer to a Pod whose Job has finished.
func (w *tenant) holdAgain() bool {
	j := w.api.jobs[w.uid]
	p := w.anyPod(func(p *pod) bool { return p.owner == w.uid && !p.Orphan && !p.Held && !p.Deleting })
	if p == nil || j == nil || !j.Finished() {
		return false
	}
	w.trace("user     adds the finalizer to %s", p.Name)
	w.truth.setUncertain(p.UID)
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Held = true })
	return true
}
