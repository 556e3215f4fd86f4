package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// API is the part of an API server that the effects of functions reach: objects with UIDs and versions, finalizers that keep
// deleted objects, preconditions. It implements engine.Actor the way the cluster adapter does.
type API struct {
	// Namespace is the namespace of all objects.
	Namespace string
	// Now returns the simulated time.
	Now func() time.Time
	// Emit receives every change, as a watch does. It may be nil.
	Emit func(events.Key, events.Event)
	// Refuse returns a reason to refuse a CreatePod, as a quota does; "" accepts it. It may be nil.
	Refuse func(effect.CreatePod) (reason, message string)
	// Crowded turns adoption by a Job's own selector off: too many other Jobs have selectors of their own.
	Crowded bool
	// Lingering adds a finalizer of the user's own to the Jobs' templates.
	Lingering bool
	// Check sees every effect before it is carried out, and records what is wrong with it. It may be nil.
	Check Checker
	// Wrote receives every status write that was stored. It may be nil.
	Wrote func(before, after events.Job)
	// Announced receives every announcement that was stored. It may be nil.
	Announced func(events.Public)

	version uint64
	made    int
	skew    time.Duration   // how far the clock of the acting process is ahead
	torn    bool            // the process dies after it has removed a Pod's finalizer and before it deletes the Pod
	names   map[string]bool // every Pod name that has existed, or that a FindPod did not find
	jobs    map[types.UID]*events.Job
	leaving map[types.UID]metav1.DeletionPropagation // Jobs being deleted, and what is to happen to their Pods
	pods    map[string]*pod
	values  map[string]Values
}

// Checker compares effects on the API with the truth. Jobs and Pods are those before the effect.
type Checker interface {
	StatusWritten(old, next events.Job)
	PodCreated(j events.Job, p events.Pod, e effect.CreatePod)
	PodRepeated(p events.Pod)
	FinalizerRemoved(p events.Pod, owner types.UID, by effect.Effect)
	PodDeleted(p events.Pod, owner types.UID, e effect.DeletePod)
	PodAdopted(j events.Job, p events.Pod, e effect.AdoptPod)
	PodReleased(p events.Pod, owner types.UID)
	JobDeleted(j events.Job)
}

// pod is a Pod, and what the API server knows beyond the projection.
type pod struct {
	events.Pod
	// owner is the Job that controls the Pod. For an orphan it is the Job that the generated label names, "" for none.
	owner types.UID
	// managed reports whether the Pod has our label. Without it the trigger sees the Pod only if a Job selects it.
	managed bool
	// lingers reports whether the Pod has a finalizer of the user's own, which keeps it when it is deleted.
	lingers bool
}

// Values is a ConfigMap of per-completion values.
type Values struct {
	// Count is the number of values in each of its lists.
	Count int
	// Mutable ConfigMaps are refused.
	Mutable bool
}

// NewAPI returns an empty API server.
func NewAPI(now func() time.Time) *API {
	return &API{Namespace: "default", Now: now, jobs: map[types.UID]*events.Job{}, leaving: map[types.UID]metav1.DeletionPropagation{},
		pods: map[string]*pod{}, names: map[string]bool{}, values: map[string]Values{}}
}

// Key is the key of a Job's state in the default namespace.
func Key(uid types.UID) events.Key {
	return events.Key{Function: job.Name, Namespace: "default", UID: uid}
}

// Key is the key of a Job's state.
func (a *API) Key(uid types.UID) events.Key {
	return events.Key{Function: job.Name, Namespace: a.Namespace, UID: uid}
}

// name returns a UID that is unique across namespaces.
func (a *API) name(kind string) types.UID {
	a.made++
	if a.Namespace != "default" {
		kind = a.Namespace + "-" + kind
	}
	return types.UID(fmt.Sprintf("%s-%d", kind, a.made))
}

// CreateJob stores a Job and returns it, with a new UID if it has none. The name must be free.
func (a *API) CreateJob(j events.Job) events.Job {
	if j.UID == "" {
		j.UID = a.name("job")
	}
	j.Namespace, j.Created, j.Generation = a.Namespace, a.Now(), 1
	j.Version = a.tick()
	j.Status = *j.Status.DeepCopy()
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
		delete(a.leaving, uid)
		a.emit(uid, events.JobGone{Name: j.Name, Version: a.tick()})
	}
}

// LeaveJob starts the deletion of the Job, which the garbage collector completes: in the foreground after its Pods are gone,
// with orphaning after they have lost their owner.
func (a *API) LeaveJob(uid types.UID, how metav1.DeletionPropagation) {
	if j := a.jobs[uid]; j != nil && !j.Deleting {
		a.leaving[uid] = how
		a.UpdateJob(uid, func(j *events.Job) { j.Deleting = true })
	}
}

// AddPod stores a Pod that neither the reconciler nor a Job has made. owner is the Job that controls it, "" for none.
func (a *API) AddPod(owner types.UID, p events.Pod) events.Pod {
	p.UID, p.Version, p.Created, p.Orphan = a.name("pod"), a.tick(), a.Now(), owner == ""
	x := &pod{Pod: p, owner: owner, managed: owner != ""}
	a.pods[p.Name], a.names[p.Name] = x, true
	a.emitPod(x)
	return p
}

// UpdatePod changes a Pod. A deleted Pod without finalizers is removed.
func (a *API) UpdatePod(name string, change func(*events.Pod)) {
	p := a.pods[name]
	if p == nil {
		return
	}
	change(&p.Pod)
	p.Version = a.tick()
	if p.Deleting && !p.Held && p.Terminal() && !p.lingers {
		a.removePod(name)
		return
	}
	a.emitPod(p)
}

func (a *API) removePod(name string) {
	p := a.pods[name]
	delete(a.pods, name)
	p.Version = a.tick()
	if uid := a.receiver(p); uid != "" {
		a.emit(uid, events.PodGone{Pod: p.observe()})
	}
}

// SetValues creates or replaces the ConfigMap of that name; nil deletes it.
func (a *API) SetValues(name string, v *Values) {
	if delete(a.values, name); v != nil {
		a.values[name] = *v
	}
}

func (a *API) podNames() []string { return slices.Sorted(maps.Keys(a.pods)) }

func (a *API) tick() uint64 { a.version++; return a.version }

func (a *API) emitJob(uid types.UID) { a.emit(uid, events.JobObserved{Job: a.job(uid)}) }

func (a *API) emitPod(p *pod) {
	if uid := a.receiver(p); uid != "" {
		a.emit(uid, events.PodObserved{Pod: p.observe()})
	}
}

func (a *API) emit(owner types.UID, e events.Event) {
	if a.Emit != nil {
		a.Emit(a.Key(owner), e)
	}
}

// receiver returns the Job that receives observations of the Pod, "" for none: its controller; for an orphan with our label the Job
// that the generated label names; for any other orphan the Job that selects it.
func (a *API) receiver(p *pod) types.UID {
	if !p.Orphan || p.managed && p.Labels == nil {
		return p.owner
	}
	for _, uid := range slices.Sorted(maps.Keys(a.jobs)) {
		if j := a.jobs[uid]; j.Selector != nil && !a.Crowded && matches(j, p) {
			return uid
		}
	}
	return ""
}

// matches reports whether the Job's selector matches the Pod.
func matches(j *events.Job, p *pod) bool {
	if p.Labels == nil {
		return p.owner == j.UID
	}
	if j.Selector == nil {
		return false
	}
	s, err := metav1.LabelSelectorAsSelector(j.Selector)
	return err == nil && s.Matches(labels.Set(p.Labels))
}

// job returns the Job as the trigger and the cluster adapter observe it.
func (a *API) job(uid types.UID) events.Job { return observeJob(*a.jobs[uid]) }

// observe returns the Pod as the trigger and the cluster adapter observe it.
func (p *pod) observe() events.Pod { return observePod(p.Pod, p.owner) }

// List returns a snapshot: the Job, then its Pods.
func (a *API) List(id string, uid types.UID) events.JobListed {
	out := events.JobListed{ID: id, JobsVersion: a.version, Version: a.version}
	keepsFailed := false
	if a.jobs[uid] != nil {
		j := a.job(uid)
		out.Job, out.Name, out.AdoptsNone = &j, j.Name, a.Crowded && j.Selector != nil
		keepsFailed = j.Options.FailedPodsLimit != nil
	}
	for _, name := range a.podNames() {
		p := a.pods[name]
		if needed := p.Held || !p.Terminal() || p.Orphan || keepsFailed && p.Phase == events.Failed; needed && a.receiver(p) == uid {
			seen := p.observe()
			seen.End = nil // the adapter omits it
			out.Pods = append(out.Pods, seen)
		}
	}
	return out
}
