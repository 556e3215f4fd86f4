package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// API is an API server as far as the effects of functions reach: objects with UIDs and versions, finalizers that keep
// what is deleted, preconditions. It implements engine.Actor the way the cluster adapter does.
type API struct {
	// Now is the world's clock.
	Now func() time.Time
	// Emit hears of every change, as a watch does. It may be nil.
	Emit func(events.Key, events.Event)
	// Refuse may answer a CreatePod with a refusal, as a quota does. It may be nil.
	Refuse func(effect.CreatePod) (reason, message string)
	// Check hears of every status write before it is stored and of every release, and says what is wrong with it.
	Check Checker

	version uint64
	made    int
	names   map[string]bool // every Pod name there has been, or was looked for in vain
	jobs    map[types.UID]*events.Job
	pods    map[string]*pod
}

// Checker holds the effects on the API against the truth.
type Checker interface {
	StatusWritten(old, next events.Job)
	PodReleased(p events.Pod, owner types.UID, by effect.Effect)
	PodRepeated(p events.Pod)
	PodDeleted(p events.Pod)
}

// pod is a Pod and what the API server knows besides the projection.
type pod struct {
	events.Pod
	owner types.UID
}

// NewAPI returns an empty API server.
func NewAPI(now func() time.Time) *API {
	return &API{Now: now, jobs: map[types.UID]*events.Job{}, pods: map[string]*pod{}, names: map[string]bool{}}
}

// Key is the key of a Job's state.
func Key(uid types.UID) events.Key {
	return events.Key{Function: "job", Namespace: "default", UID: uid}
}

// CreateJob stores a Job under a new UID and returns it. The name must be free.
func (a *API) CreateJob(j events.Job) events.Job {
	a.made++
	j.Namespace, j.UID, j.Created = "default", types.UID(fmt.Sprintf("job-%d", a.made)), a.Now()
	j.Version = a.tick()
	a.jobs[j.UID] = &j
	a.emitJob(j.UID)
	return j
}

// UpdateJob changes the Job as a user does, if it exists.
func (a *API) UpdateJob(uid types.UID, change func(*events.Job)) {
	if j := a.jobs[uid]; j != nil {
		change(j)
		j.Version = a.tick()
		a.emitJob(uid)
	}
}

// DeleteJob removes the Job at once, as a deletion in the background does.
func (a *API) DeleteJob(uid types.UID) {
	if j := a.jobs[uid]; j != nil {
		delete(a.jobs, uid)
		a.emit(uid, events.JobGone{Name: j.Name, Version: a.tick()})
	}
}

// UpdatePod changes a Pod and lets it go where it is deleted and nobody holds it.
func (a *API) UpdatePod(name string, change func(*events.Pod)) {
	p := a.pods[name]
	if p == nil {
		return
	}
	change(&p.Pod)
	p.Version = a.tick()
	if p.Deleting && !p.Held && p.Terminal() {
		a.removePod(name)
		return
	}
	a.emit(p.owner, events.PodObserved{Pod: p.Pod})
}

func (a *API) removePod(name string) {
	p := a.pods[name]
	delete(a.pods, name)
	p.Version = a.tick()
	a.emit(p.owner, events.PodGone{Pod: p.Pod})
}

func (a *API) podNames() []string { return slices.Sorted(maps.Keys(a.pods)) }

func (a *API) tick() uint64 { a.version++; return a.version }

func (a *API) emitJob(uid types.UID) { a.emit(uid, events.JobObserved{Job: a.job(uid)}) }

func (a *API) emit(owner types.UID, e events.Event) {
	if a.Emit != nil {
		a.Emit(Key(owner), e)
	}
}

// job is a copy that nobody else changes.
func (a *API) job(uid types.UID) events.Job {
	j := *a.jobs[uid]
	j.Status = *j.Status.DeepCopy()
	return j
}

// List is a roster of the Job: the Job first, then its Pods.
func (a *API) List(id string, uid types.UID) events.JobListed {
	out := events.JobListed{ID: id, JobsVersion: a.version, Version: a.version}
	if a.jobs[uid] != nil {
		j := a.job(uid)
		out.Job, out.Name = &j, j.Name
	}
	for _, name := range a.podNames() {
		if p := a.pods[name]; p.owner == uid && (p.Held || !p.Terminal()) {
			out.Pods = append(out.Pods, p.Pod)
		}
	}
	return out
}

// Act implements engine.Actor.
func (a *API) Act(_ context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	switch e := e.(type) {
	case effect.TakeInventory:
		return a.takeInventory(key, e), nil
	case effect.WriteJobStatus:
		return a.writeStatus(key, e), nil
	case effect.CreatePod:
		return a.createPod(key, e), nil
	case effect.FindPod:
		if p := a.pods[e.Name]; p != nil && p.owner == key.UID && p.Serial == e.Serial {
			return []events.Event{events.PodObserved{Pod: p.Pod}}, nil
		}
		a.names[e.Name] = true
		return []events.Event{events.PodGone{Pod: events.Pod{Name: e.Name, Serial: e.Serial}}}, nil
	case effect.ReleasePod:
		return a.changePod(e.Name, e.UID, 0, func(p *pod) { a.release(p, e) }), nil
	case effect.HoldPod:
		return a.changePod(e.Name, e.UID, e.Version, func(p *pod) { p.Held = true }), nil
	case effect.DeletePod:
		return a.changePod(e.Name, e.UID, e.Version, func(p *pod) {
			if e.Release {
				a.release(p, e)
			} else if p.Held && a.Check != nil {
				a.Check.PodDeleted(p.Pod)
			}
			p.Deleting, p.Finished = true, a.Now()
		}), nil
	}
	return nil, engine.Retry{Err: fmt.Errorf("%s: %w", e.Kind(), errors.ErrUnsupported)}
}

func (a *API) release(p *pod, by effect.Effect) {
	if p.Held && a.Check != nil {
		a.Check.PodReleased(p.Pod, p.owner, by)
	}
	p.Held = false
}

func (a *API) takeInventory(key events.Key, e effect.TakeInventory) []events.Event {
	list := a.List(e.ID, key.UID)
	if j := list.Job; j != nil && j.Status.StartTime == nil && e.Job != "" {
		list.Version, list.Pods = 0, nil // never started: the adapter does not look for Pods that cannot exist
	}
	return []events.Event{list}
}

func (a *API) writeStatus(key events.Key, e effect.WriteJobStatus) []events.Event {
	j := a.jobs[key.UID]
	if j == nil {
		return []events.Event{events.JobGone{Name: e.Job}}
	}
	if j.Version == e.Version {
		next := *j
		next.Status, next.NextSerial, next.Backoff = *e.Status.DeepCopy(), e.NextSerial, e.Backoff
		next.Version = a.tick()
		if a.Check != nil {
			a.Check.StatusWritten(*j, next)
		}
		*j = next
		a.emitJob(key.UID)
	}
	return []events.Event{events.JobObserved{Job: a.job(key.UID)}}
}

func (a *API) createPod(key events.Key, e effect.CreatePod) []events.Event {
	j := a.jobs[key.UID]
	if j == nil {
		return []events.Event{events.JobGone{Name: e.Job}}
	}
	if p := a.pods[e.Name]; p != nil {
		if p.owner == key.UID && p.Serial == e.Serial {
			return []events.Event{events.PodObserved{Pod: p.Pod}}
		}
		return []events.Event{events.EffectRefused{Effect: e.Kind(), Serial: e.Serial, Reason: "AlreadyExists", At: a.Now()}}
	}
	if a.Refuse != nil {
		if reason, message := a.Refuse(e); reason != "" {
			return []events.Event{events.EffectRefused{Effect: e.Kind(), Serial: e.Serial, Reason: reason, Message: message, At: a.Now()}}
		}
	}
	a.made++
	p := &pod{owner: key.UID, Pod: events.Pod{Name: e.Name, UID: types.UID(fmt.Sprintf("pod-%d", a.made)), Version: a.tick(), Owner: j.Name,
		Serial: e.Serial, Index: e.Index, Phase: events.Pending, Held: true, Created: a.Now()}}
	if a.names[p.Name] && a.Check != nil {
		a.Check.PodRepeated(p.Pod)
	}
	a.names[p.Name] = true
	a.pods[e.Name] = p
	a.emit(key.UID, events.PodObserved{Pod: p.Pod})
	return []events.Event{events.PodObserved{Pod: p.Pod}}
}

// changePod applies a change whose preconditions hold, and answers with the Pod as it is now.
func (a *API) changePod(name string, uid types.UID, version uint64, change func(*pod)) []events.Event {
	p := a.pods[name]
	if p == nil || p.UID != uid {
		return []events.Event{events.PodGone{Pod: events.Pod{Name: name, UID: uid, Serial: events.NoSerial}}}
	}
	if version == 0 || version == p.Version {
		a.UpdatePod(name, func(*events.Pod) { change(p) })
	}
	if now := a.pods[name]; now != nil {
		return []events.Event{events.PodObserved{Pod: now.Pod}}
	}
	return []events.Event{events.PodGone{Pod: p.Pod}}
}
