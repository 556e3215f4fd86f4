package job

import (
	"cmp"
	"slices"
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

// claimPods adopts Pods that the Job may have, and releases those that it may not (upstream: ClaimPods):
//
//	            selector matches                 does not
//	orphan      adopt, with a serial and held    leave alone, remove the finalizer
//	owned       give a serial if it has none     release
//
// No Pod is created as long as one waits to be adopted: it may be the missing one.
func claimPods(s State, now time.Time) (State, []effect.Effect) {
	var out []effect.Effect
	changes := 0
	want := func(e effect.Effect) {
		if out = append(out, e); !s.Waits.Blocked(e, now) {
			changes++
		}
	}
	for _, u := range s.unplaced(false) {
		p := u.Pod
		switch {
		case !matches(s.Job, p) && !p.Orphan:
			want(effect.ReleasePod{Name: p.Name, UID: p.UID})
		case !matches(s.Job, p), p.Orphan && p.Deleting:
			if p.Held {
				want(effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
			} else {
				s.placed(p.UID, events.NoSerial)
			}
		default:
			if u.Serial == events.NoSerial {
				u.Serial = s.serialFor(p)
				s.Next = max(s.Next, u.Serial+1)
				s.Unplaced[p.UID] = u
			}
			want(adopt(s.Job, p, u.Serial))
		}
		if changes >= s.limits.MaxPodChanges {
			break // the observations that follow wake the next plan for the rest
		}
	}
	for _, serial := range s.serials() {
		switch r := s.Pods[serial]; {
		case r.Gone || r.intended() || mine(s.Job, r.Pod) && !r.Unstamped:
		case mine(s.Job, r.Pod):
			out = append(out, adopt(s.Job, r.Pod, serial))
		case !r.Pod.Orphan:
			out = append(out, effect.ReleasePod{Name: r.Pod.Name, UID: r.Pod.UID})
		case matches(s.Job, r.Pod) && !r.Pod.Deleting:
			out = append(out, adopt(s.Job, r.Pod, serial))
		case r.Pod.Held:
			out = append(out, effect.RemoveFinalizer{Name: r.Pod.Name, UID: r.Pod.UID})
		default:
			s.settleSerial(serial)
		}
	}
	return s, out
}

// serialFor returns the serial for a Pod that waits for one. It is the serial under which this function created the Pod, if there
// is one, because observations with that serial may still arrive; otherwise the next. A row that is only intended under its name
// waits for this very Pod: no other can be created as long as it exists.
func (s State) serialFor(p events.Pod) int {
	own := s.named(p)
	r, used := s.Pods[own]
	used = used && (!r.intended() || r.Pod.Name != p.Name)
	for _, u := range s.Unplaced {
		used = used || u.Serial == own
	}
	if own == events.NoSerial || used || s.Settled.Has(own) {
		return s.Next
	}
	return own
}

// adopt holds the Pod until it is counted, unless it shows that one of jobstream's Jobs has counted it already, or is just
// counting it.
func adopt(j events.Job, p events.Pod, serial int) effect.Effect {
	listed := false
	if u := j.Status.UncountedTerminatedPods; u != nil {
		listed = slices.Contains(u.Succeeded, p.UID) || slices.Contains(u.Failed, p.UID)
	}
	counted := p.Terminal() && !p.Held && (p.Serial != events.NoSerial || listed)
	return effect.AdoptPod{Job: j.Name, Name: p.Name, UID: p.UID, Version: p.Version, Serial: serial, Hold: !counted && !p.Deleting}
}

// mine reports whether the Pod is the Job's: owned, and selected.
func mine(j events.Job, p events.Pod) bool { return !p.Orphan && matches(j, p) }

// unplaced returns the strays, or the Pods that wait for a serial, in an order that is the same for equal states.
func (s State) unplaced(strays bool) (out []Unplaced) {
	for _, u := range s.Unplaced {
		if u.Stray == strays {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Unplaced) int {
		return cmp.Or(a.Pod.Created.Compare(b.Pod.Created), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
	return out
}

// releaseUnplaced removes the finalizers of unplaced Pods of a Job that is over. If the Job has finished, it also deletes strays,
// and those of its own that still run.
func (s *State) releaseUnplaced(finished bool) (out []effect.Effect) {
	for _, u := range append(s.unplaced(true), s.unplaced(false)...) {
		p := u.Pod
		switch {
		case finished && (u.Stray || mine(s.Job, p) && !p.Terminal() && (p.Held || !p.Deleting)):
			out = append(out, u.remove())
		case p.Held:
			out = append(out, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
		default:
			s.placed(p.UID, events.NoSerial)
		}
	}
	return out
}

// remove removes the finalizer, if there is one, and deletes the Pod. The precondition is the observed version: a late
// observation of a Pod that was counted long ago no longer matches, and nothing happens.
func (u Unplaced) remove() effect.Effect {
	return effect.DeletePod{Name: u.Pod.Name, UID: u.Pod.UID, Version: u.Pod.Version, RemoveFinalizer: u.Pod.Held}
}
