package job

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// matches reports whether the Job's selector selects the Pod.
func matches(j events.Job, p events.Pod) bool {
	if p.Labels == nil {
		return true // judged as selected, or it has the generated label of this very Job
	}
	if _, judged := p.Labels[strange]; judged || j.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(j.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels)) // the API server rejects an invalid selector
}

// strange replaces the labels of a Pod that the selector does not select. No label of Kubernetes has an empty key.
const strange = ""

// judged returns what the state keeps of a Pod's labels: only whether the selector, which never changes, selects them. The state
// has thousands of Pods, and users may give each of them any number of labels.
func judged(j events.Job, p events.Pod) map[string]string {
	if matches(j, p) {
		return nil
	}
	return map[string]string{strange: ""}
}

// claimPods adopts Pods that the Job may have, and releases those that it may not, as upstream's ClaimPods does:
//
//	            selector matches                 does not
//	orphan      adopt, with a serial and held    leave alone, remove the finalizer
//	owned       give a serial if it has none     release
//
// No Pod is created as long as one waits to be adopted: it may be the missing one.
func claimPods(s State, now time.Time) (State, []effect.Effect) {
	var out []effect.Effect
	changes := 0
	s.retract()
	for _, u := range s.unplaced(false) {
		e := claim(s.Job, u.Pod, u.Serial)
		if a, adopts := e.(effect.AdoptPod); adopts && u.Serial == events.NoSerial {
			a.Serial = s.serialFor(u.Pod)
			s.Next = max(s.Next, a.Serial+1)
			u.Serial, e = a.Serial, a
			s.Unplaced[u.Pod.UID] = u
		}
		if e == nil {
			s.placed(u.Pod.UID, events.NoSerial)
		} else if out = append(out, e); !s.Waits.Blocked(e, now) {
			changes++
		}
		if changes >= s.limits.MaxPodChanges {
			break // the observations that follow wake the next plan for the rest
		}
	}
	for _, serial := range s.serials() {
		r := s.Pods[serial]
		if r.Gone || r.intended() || mine(s.Job, r.Pod) && !r.Unstamped {
			continue
		}
		if e := claim(s.Job, r.Pod, serial); e != nil {
			out = append(out, e)
		} else {
			s.settleSerial(serial)
		}
	}
	return s, out
}

// claim returns the effect that the table above names for a Pod, nil if it is left alone.
func claim(j events.Job, p events.Pod, serial int) effect.Effect {
	switch selected := matches(j, p); {
	case !selected && !p.Orphan:
		return effect.ReleasePod{Name: p.Name, UID: p.UID}
	case selected && (!p.Orphan || !p.Deleting):
		return adopt(j, p, serial)
	case p.Held:
		return effect.RemoveFinalizer{Name: p.Name, UID: p.UID}
	}
	return nil
}

// adopt holds the Pod until it is counted, unless it shows that one of jobstream's Jobs has counted it already, or is just
// counting it.
func adopt(j events.Job, p events.Pod, serial int) effect.Effect {
	counted := p.Terminal() && !p.Held && (p.Serial != events.NoSerial || listed(j.Status)[p.UID] != "")
	return effect.AdoptPod{Job: j.Name, Name: p.Name, UID: p.UID, Version: p.Version, Serial: serial, Hold: !counted && !p.Deleting}
}

// mine reports whether the Pod is the Job's: owned, and selected.
func mine(j events.Job, p events.Pod) bool { return !p.Orphan && matches(j, p) }
