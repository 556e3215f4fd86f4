package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// Act implements engine.Actor.
func (a *API) Act(_ context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	switch e := e.(type) {
	case effect.TakeInventory:
		return a.takeInventory(key, e), nil
	case effect.WriteJobStatus:
		return a.writeStatus(key, e), nil
	case effect.DeleteJob:
		return a.expire(key, e), nil
	case effect.ReadParameters:
		return a.readValues(e), nil
	case effect.CreatePod:
		return a.createPod(key, e), nil
	case effect.FindPod:
		return a.findPod(key, e), nil
	case effect.RemoveFinalizer:
		return a.changePod(e.Name, e.UID, 0, func(p *pod) bool { return a.removeFinalizer(p, e) }), nil
	case effect.AddFinalizer:
		return a.changePod(e.Name, e.UID, e.Version, func(p *pod) bool {
			if p.Held || p.Deleting { // the API server accepts no finalizer on an object that is being deleted
				return false
			}
			p.Held = true
			return true
		}), nil
	case effect.DeletePod:
		return a.changePod(e.Name, e.UID, e.Version, func(p *pod) bool { return a.deletePod(p, e) }), nil
	case effect.AdoptPod:
		return a.adoptPod(key, e), nil
	case effect.ReleasePod:
		return a.releasePod(key, e), nil
	case effect.Announce: // for callers without a bus; in worlds the bus does it
		if a.Announced != nil {
			a.Announced(e.Event)
		}
		return []events.Event{events.Announced{ID: events.PublicID(e.Event)}}, nil
	}
	return nil, engine.Retry{Err: fmt.Errorf("%s: %w", e.Kind(), errors.ErrUnsupported)}
}

func (a *API) removeFinalizer(p *pod, by effect.Effect) (changed bool) {
	if !p.Held {
		return false
	}
	if a.Check != nil {
		a.Check.FinalizerRemoved(p.Pod, p.owner, by)
	}
	p.Held = false
	return true
}

func (a *API) deletePod(p *pod, e effect.DeletePod) (changed bool) {
	if e.RemoveFinalizer {
		if changed = a.removeFinalizer(p, e); a.torn {
			return changed
		}
	} else if a.Check != nil {
		a.Check.PodDeleted(p.Pod, p.owner, e)
	}
	return a.markDeleted(p) || changed
}

func (a *API) markDeleted(p *pod) (changed bool) {
	if p.Deleting {
		return false
	}
	if p.Deleting = true; !p.Terminal() {
		p.Finished = a.Now().Truncate(time.Second)
	}
	return true
}

func (a *API) takeInventory(key events.Key, e effect.TakeInventory) []events.Event {
	list := a.List(e.ID, key.UID)
	if j := list.Job; j != nil && j.Untouched() && e.Job != "" {
		list.Version, list.Pods = 0, nil // the adapter does not list the Pods of a new Job
	}
	return []events.Event{list}
}

func (a *API) writeStatus(key events.Key, e effect.WriteJobStatus) []events.Event {
	j := a.jobs[key.UID]
	if j == nil {
		return []events.Event{events.JobGone{Name: e.Job}}
	}
	if j.Version == e.Version {
		before, next := *j, *j
		next.Status, next.NextSerial, next.Backoff = *e.Status.DeepCopy(), e.NextSerial, e.Backoff
		next.LastFailure, next.FailedIndexExits = e.LastFailure, e.FailedIndexExits
		next.Version = a.tick()
		if a.Check != nil {
			a.Check.StatusWritten(before, next)
		}
		*j = next
		if a.Wrote != nil {
			a.Wrote(before, a.job(key.UID))
		}
		a.emitJob(key.UID)
	}
	return []events.Event{events.JobObserved{Job: a.job(key.UID)}}
}

// expire deletes a Job in the foreground.
func (a *API) expire(key events.Key, e effect.DeleteJob) []events.Event {
	j := a.jobs[key.UID]
	if j == nil {
		return []events.Event{events.JobGone{Name: e.Job}}
	}
	if j.Version == e.Version {
		if a.Check != nil {
			a.Check.JobDeleted(*j)
		}
		a.LeaveJob(key.UID, metav1.DeletePropagationForeground)
	}
	return []events.Event{events.JobObserved{Job: a.job(key.UID)}}
}

func (a *API) readValues(e effect.ReadParameters) []events.Event {
	if reason, message := a.badValues(e.ConfigMap); reason != "" {
		return a.refusal(e, events.NoSerial, reason, message)
	}
	return []events.Event{events.ParametersObserved{Name: e.ConfigMap, Count: a.values[e.ConfigMap].Count, At: a.Now().Add(a.skew)}}
}

// badValues returns what is wrong with a ConfigMap, with the reason and message of the cluster adapter; "" if nothing is.
func (a *API) badValues(name string) (reason, message string) {
	switch v, ok := a.values[name]; {
	case !ok:
		return "ConfigMapNotFound", "the ConfigMap " + name + " does not exist"
	case v.Mutable:
		return effect.InvalidParameters, "the ConfigMap " + name + " is not immutable"
	}
	return "", ""
}

func (a *API) refusal(e effect.Effect, serial int, reason, message string) []events.Event {
	return []events.Event{events.EffectRefused{Effect: e.Kind(), Serial: serial, Name: effect.Subject(e), Reason: reason, Message: message, At: a.Now().Add(a.skew)}}
}

func (a *API) createPod(key events.Key, e effect.CreatePod) []events.Event {
	j := a.jobs[key.UID]
	switch {
	case j == nil:
		return []events.Event{events.JobGone{Name: e.Job}}
	case j.Deleting, j.Suspended, e.Parameters != "" && e.Parameters != j.Options.Parameters:
		return []events.Event{events.JobObserved{Job: a.job(key.UID)}}
	}
	if p := a.pods[e.Name]; p != nil {
		if p.isIntended(key, e.Serial) {
			return []events.Event{events.PodObserved{Pod: p.observe()}}
		}
		return a.refusal(e, e.Serial, "AlreadyExists", "")
	}
	if e.Parameters != "" {
		if reason, message := a.badValues(e.Parameters); reason != "" {
			return a.refusal(e, e.Serial, reason, message)
		}
		if e.Index >= a.values[e.Parameters].Count {
			return a.refusal(e, e.Serial, effect.InvalidParameters, "the ConfigMap "+e.Parameters+" has no value for the index")
		}
	}
	if a.Refuse != nil {
		if reason, message := a.Refuse(e); reason != "" {
			return a.refusal(e, e.Serial, reason, message)
		}
	}
	p := &pod{owner: key.UID, managed: true, lingers: a.Lingering, Pod: events.Pod{Name: e.Name, UID: a.name("pod"), Version: a.tick(),
		Owner: j.Name, Serial: e.Serial, Index: e.Index, Phase: events.Pending, Held: true, Created: a.Now()}}
	if e.PerIndex {
		p.IndexFailures, p.IndexIgnoredFailures = e.IndexFailures, e.IndexIgnoredFailures
	}
	if j.Selector != nil { // then the template's labels are the user's, and no label is generated
		p.Labels = j.Selector.MatchLabels
	}
	if a.Check != nil {
		if a.names[p.Name] {
			a.Check.PodRepeated(p.Pod)
		}
		a.Check.PodCreated(*j, p.Pod, e)
	}
	a.names[p.Name] = true
	a.pods[e.Name] = p
	a.emitPod(p)
	return []events.Event{events.PodObserved{Pod: p.observe()}}
}

// isIntended follows the cluster adapter: the generated label names the Job of an orphan. A deleted orphan belongs to no Job.
func (p *pod) isIntended(key events.Key, serial int) bool {
	return p.owner == key.UID && p.Serial == serial && (!p.Orphan || p.Labels == nil && !p.Deleting)
}

func (a *API) findPod(key events.Key, e effect.FindPod) []events.Event {
	if p := a.pods[e.Name]; p != nil && p.isIntended(key, e.Serial) {
		return []events.Event{events.PodObserved{Pod: p.observe()}}
	}
	a.names[e.Name] = true
	return []events.Event{events.PodGone{Pod: events.Pod{Name: e.Name, Serial: e.Serial}}}
}

// adoptPod reads the Job from the API server before it adopts a Pod, as the built-in controller does.
func (a *API) adoptPod(key events.Key, e effect.AdoptPod) []events.Event {
	j := a.jobs[key.UID]
	switch {
	case j == nil:
		return []events.Event{events.JobGone{Name: e.Job}}
	case j.Deleting:
		return []events.Event{events.JobObserved{Job: a.job(key.UID)}}
	}
	return a.changePod(e.Name, e.UID, e.Version, func(p *pod) bool {
		if !p.Orphan && p.owner != key.UID || e.Hold && p.Deleting && !p.Held {
			return false // invalid: another controller owns it, or it is being deleted and takes no finalizer
		}
		if a.Check != nil {
			a.Check.PodAdopted(*j, p.Pod, e)
		}
		p.owner, p.managed, p.Orphan, p.Owner, p.Serial = key.UID, true, false, j.Name, e.Serial
		p.Held = p.Held || e.Hold
		return true
	})
}

// releasePod removes the tracking label, the controller reference and the finalizer from a Pod.
func (a *API) releasePod(key events.Key, e effect.ReleasePod) []events.Event {
	p := a.pods[e.Name]
	if p != nil && p.UID == e.UID && !p.Orphan && p.owner == key.UID {
		if a.Check != nil {
			a.Check.PodReleased(p.Pod, p.owner)
		}
		p.Orphan, p.managed, p.Held = true, false, false
		a.UpdatePod(e.Name, func(*events.Pod) {})
	}
	return []events.Event{events.PodGone{Pod: events.Pod{Name: e.Name, UID: e.UID, Serial: events.NoSerial, Index: events.NoIndex}}}
}

// changePod applies a change if its preconditions hold, and returns the Pod as it is now. A change that reports false is not
// written.
func (a *API) changePod(name string, uid types.UID, version uint64, change func(*pod) (changed bool)) []events.Event {
	p := a.pods[name]
	if p == nil || p.UID != uid {
		return []events.Event{events.PodGone{Pod: events.Pod{Name: name, UID: uid, Serial: events.NoSerial}}}
	}
	if (version == 0 || version == p.Version) && change(p) {
		a.UpdatePod(name, func(*events.Pod) {})
	}
	if now := a.pods[name]; now != nil {
		return []events.Event{events.PodObserved{Pod: now.observe()}}
	}
	return []events.Event{events.PodGone{Pod: p.observe()}}
}
