package sim

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// collect does what kube-controller-manager does to the Pod: it collects garbage, removes ended Pods, and removes the tracking
// finalizer from Pods that no Job owns. It reports whether there was anything to do.
func (w *tenant) collect(p *pod) bool {
	j := w.api.jobs[p.owner]
	switch {
	case p.Terminal() && p.Deleting && !p.Held && p.lingers:
		if !w.calm && w.rand.IntN(20) > 0 {
			return false
		}
		w.trace("user     removes the finalizer of the user's own from %s", p.Name)
		w.row("foreign-finalizer")
		w.api.removePod(p.Name)
	case p.Terminal() && p.Deleting && !p.Held:
		w.trace("node     %s removed", p.Name)
		w.api.removePod(p.Name)
	case !p.Orphan && j == nil && !p.Deleting:
		w.trace("gc       %s deleted: its Job is gone", p.Name)
		w.delete(p.Name)
	case !p.Orphan && j != nil && j.Deleting && w.api.leaving[j.UID] == metav1.DeletePropagationOrphan:
		w.trace("gc       %s is orphaned: its Job is being deleted", p.Name)
		w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Orphan = true })
	case !p.Orphan && j != nil && j.Deleting && !p.Deleting:
		w.trace("gc       %s deleted: its Job is being deleted", p.Name)
		w.delete(p.Name)
	case p.Orphan && p.Held && (w.api.receiver(p) == "" || w.rand.IntN(20) == 0):
		w.trace("kcm      removes the finalizer from %s: no Job owns it", p.Name)
		w.lose(p)
	case p.Terminal() && !p.Held && w.rand.IntN(12) == 0 && !w.keeps(p):
		w.trace("gc       %s collected", p.Name)
		w.delete(p.Name)
	default:
		return false
	}
	return true
}

// keeps reports whether the Job must delete the Pod. With a limit of failed Pods, the garbage collector leaves most of them, so
// that there is something for the limit to delete.
func (w *tenant) keeps(p *pod) bool {
	return p.Phase == events.Failed && w.has(keeping) && w.rand.IntN(8) > 0
}

// lose removes the finalizer from a Pod. Whether an ended Pod is then counted is uncertain.
func (w *tenant) lose(p *pod) {
	if p.Terminal() || p.Deleting {
		w.truth.setUncertain(p.UID)
	}
	w.truth.stripped++
	w.api.UpdatePod(p.Name, func(p *events.Pod) { p.Held = false })
}

// removeDeleted removes a deleted Job that has no Pods left.
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
