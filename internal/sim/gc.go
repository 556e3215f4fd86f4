package sim

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// collect does to the Pod what kube-controller-manager does: it collects garbage, cleans up, and takes the tracking
// finalizer off Pods that no Job owns. It reports whether there was anything to do.
func (w *tenant) collect(p *pod) bool {
	j := w.api.jobs[p.owner]
	switch {
	case p.Terminal() && p.Deleting && !p.Held && p.lingers:
		if !w.calm && w.rand.IntN(20) > 0 {
			return false
		}
		w.trace("user     takes his own finalizer off %s", p.Name)
		w.row("foreign-finalizer")
		w.api.removePod(p.Name)
	case p.Terminal() && p.Deleting && !p.Held:
		w.trace("node     %s removed", p.Name)
		w.api.removePod(p.Name)
	case !p.Orphan && j == nil && !p.Deleting:
		w.trace("gc       %s deleted: its Job is gone", p.Name)
		w.delete(p.Name)
	case !p.Orphan && j != nil && j.Deleting && w.api.leaving[j.UID] == metav1.DeletePropagationOrphan:
		w.trace("gc       %s is orphaned: its Job goes", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Orphan = true })
	case !p.Orphan && j != nil && j.Deleting && !p.Deleting:
		w.trace("gc       %s deleted: its Job goes", p.Name)
		w.delete(p.Name)
	case p.Orphan && p.Held && (w.api.hears(p) == "" || w.rand.IntN(20) == 0):
		w.trace("kcm      takes the finalizer off %s: no Job owns it", p.Name)
		w.lose(p)
	case p.Terminal() && !p.Held && w.rand.IntN(12) == 0 && !w.keeps(p):
		w.trace("gc       %s collected", p.Name)
		w.delete(p.Name)
	default:
		return false
	}
	return true
}

// keeps says that the Pod is for the Job to delete: where the number of failed Pods is limited, the garbage collector
// leaves most of them, lest there is nothing to see.
func (w *tenant) keeps(p *pod) bool {
	return p.Phase == events.Failed && w.has(keeping) && w.rand.IntN(8) > 0
}

// lose takes the finalizer off a Pod. Nobody can count it for sure if it has ended.
func (w *tenant) lose(p *pod) {
	if p.Terminal() || p.Deleting {
		w.truth.setUncertain(p.UID)
	}
	w.truth.stripped++
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Held = false })
}

// removeDeleted removes a Job that has been deleted and has no Pods any more.
func (w *tenant) removeDeleted() bool {
	for _, uid := range slices.Sorted(maps.Keys(w.api.leaving)) {
		if !w.owns(uid) {
			w.happens("left "+string(w.api.leaving[uid]), "gc       the Job is removed")
			w.api.DeleteJob(uid)
			return true
		}
	}
	return false
}

func (w *tenant) owns(uid types.UID) bool {
	for _, p := range w.api.pods {
		if p.owner == uid && !p.Orphan {
			return true
		}
	}
	return false
}
