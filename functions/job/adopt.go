package job

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// matches says whether the Job's selector selects the Pod.
func matches(j events.Job, p events.Pod) bool {
	if p.Labels == nil {
		return true // it has the generated label of this very Job
	}
	if _, judged := p.Labels[strange]; judged || j.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(j.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels)) // the API server refuses a selector that is none
}

// strange stands for the labels of a Pod that the selector does not select. No label of Kubernetes has an empty key.
const strange = ""

// judged is what is remembered of a Pod's labels: whether the selector, which never changes, selects them. Thousands of Pods are
// kept, and somebody may have given them all the labels that he could think of.
func judged(j events.Job, p events.Pod) map[string]string {
	if matches(j, p) {
		return nil
	}
	return map[string]string{strange: ""}
}

// claim makes Pods the Job's own that it may have, and gives up those that it may not (upstream: ClaimPods):
//
//	            selector matches                 does not
//	orphan      adopt, with a serial and held    leave alone, let go
//	owned       give a serial where it has none  release
//
// No Pod is made as long as one waits to be claimed: it may be the one that is missing.
func claim(s State, now time.Time) (State, []effect.Effect) {
	var out []effect.Effect
	changes := 0
	want := func(e effect.Effect) {
		if out = append(out, e); !s.Waits.Blocked(e, now) {
			changes++
		}
	}
	for _, f := range s.finds() {
		p := f.Pod
		switch {
		case !matches(s.Job, p) && !p.Orphan:
			want(effect.ReleasePod{Name: p.Name, UID: p.UID})
		case !matches(s.Job, p), p.Orphan && p.Deleting:
			if p.Held {
				want(effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
			} else {
				s.found(p.UID, events.NoSerial)
			}
		default:
			if f.Serial == events.NoSerial {
				f.Serial = s.serialFor(p)
				s.Next = max(s.Next, f.Serial+1)
				s.Finds[p.UID] = f
			}
			want(adopt(s.Job, p, f.Serial))
		}
		if changes >= s.limits.MaxPodChanges {
			break // the answers bring the rest
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

// serialFor is the serial that a Pod gets which waits for one: the one under which we have made it, because there are observations
// of it with that one, which may come late; else the next. A row that is only intended under its name waits for this very
// Pod: nobody can make another as long as it is there.
func (s State) serialFor(p events.Pod) int {
	own := s.named(p)
	r, used := s.Pods[own]
	used = used && (!r.intended() || r.Pod.Name != p.Name)
	for _, f := range s.Finds {
		used = used || f.Serial == own
	}
	if own == events.NoSerial || used || s.Settled.Has(own) {
		return s.Next
	}
	return own
}

// adopt holds the Pod until it is counted, unless it carries the traces of having been counted by one of our Jobs already,
// or is just being counted.
func adopt(j events.Job, p events.Pod, serial int) effect.Effect {
	listed := false
	if u := j.Status.UncountedTerminatedPods; u != nil {
		listed = slices.Contains(u.Succeeded, p.UID) || slices.Contains(u.Failed, p.UID)
	}
	counted := p.Terminal() && !p.Held && (p.Serial != events.NoSerial || listed)
	return effect.AdoptPod{Job: j.Name, Name: p.Name, UID: p.UID, Version: p.Version, Serial: serial, Hold: !counted && !p.Deleting}
}

// mine says that the Pod is the Job's: owned, and selected.
func mine(j events.Job, p events.Pod) bool { return !p.Orphan && matches(j, p) }

// finds lists the Pods that wait for a serial, in an order that depends on nothing else.
func (s State) finds() []Find {
	return slices.SortedFunc(maps.Values(s.Finds), func(a, b Find) int {
		return cmp.Or(a.Pod.Created.Compare(b.Pod.Created), cmp.Compare(a.Pod.UID, b.Pod.UID))
	})
}

// releaseFinds lets go of Pods that wait for a serial of a Job that is over; if it has finished, its own may not run on.
func releaseFinds(s State, finished bool) (State, []effect.Effect) {
	var out []effect.Effect
	for _, f := range s.finds() {
		p := f.Pod
		switch {
		case finished && mine(s.Job, p) && !p.Terminal() && (p.Held || !p.Deleting):
			out = append(out, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: p.Held})
		case p.Held:
			out = append(out, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
		default:
			s.found(p.UID, events.NoSerial)
		}
	}
	return s, out
}
