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

// API is an API server as far as the effects of functions reach: objects with UIDs and versions, finalizers that keep
// what is deleted, preconditions. It implements engine.Actor the way the cluster adapter does.
type API struct {
	// Namespace is where everything is.
	Namespace string
	// Now is the world's clock.
	Now func() time.Time
	// Emit hears of every change, as a watch does. It may be nil.
	Emit func(events.Key, events.Event)
	// Refuse may answer a CreatePod with a refusal, as a quota does. It may be nil.
	Refuse func(effect.CreatePod) (reason, message string)
	// Crowded says that so many other Jobs have selectors of their own that no Job adopts by one any more.
	Crowded bool
	// Lingering says that the Jobs' templates have a finalizer of the user's own.
	Lingering bool
	// Check hears of every effect before it is done, and says what is wrong with it. It may be nil.
	Check Checker
	// Wrote hears of every status write that was stored. It may be nil.
	Wrote func(before, after events.Job)
	// Announced hears of every announcement that was stored. It may be nil.
	Announced func(events.Public)

	version uint64
	made    int
	skew    time.Duration   // how far the clock of the process that acts is ahead
	torn    bool            // who releases a Pod and deletes it then comes to grief between the two calls
	names   map[string]bool // every Pod name there has been, or was looked for in vain
	jobs    map[types.UID]*events.Job
	leaving map[types.UID]metav1.DeletionPropagation // how a Job that is being deleted takes leave of its Pods
	pods    map[string]*pod
	values  map[string]Values
}

// Checker holds the effects on the API against the truth. Jobs and Pods are as they are before the effect.
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

// pod is a Pod and what the API server knows besides the projection.
type pod struct {
	events.Pod
	// owner is the Job that controls the Pod; of an orphan the one that its generated label remembers, "" for none.
	owner types.UID
	// managed says that it carries our label: without it the trigger sees a Pod only where a Job selects it.
	managed bool
	// lingers says that it carries a finalizer of the user's own, which keeps it when it is deleted.
	lingers bool
}

// Values is a ConfigMap of per-completion values.
type Values struct {
	// Count is how many values each of its lists has.
	Count int
	// Mutable ones are refused.
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

// name makes a UID that no other namespace has.
func (a *API) name(kind string) types.UID {
	a.made++
	if a.Namespace != "default" {
		kind = a.Namespace + "-" + kind
	}
	return types.UID(fmt.Sprintf("%s-%d", kind, a.made))
}

// CreateJob stores a Job and returns it, under a new UID where it has none. The name must be free.
func (a *API) CreateJob(j events.Job) events.Job {
	if j.UID == "" {
		j.UID = a.name("job")
	}
	j.Namespace, j.Created = a.Namespace, a.Now()
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

// LeaveJob begins the deletion of the Job, which then waits for the garbage collector: in the foreground it goes after its
// Pods, as an orphaner it leaves them behind.
func (a *API) LeaveJob(uid types.UID, how metav1.DeletionPropagation) {
	if j := a.jobs[uid]; j != nil && !j.Deleting {
		a.leaving[uid] = how
		a.UpdateJob(uid, func(j *events.Job) { j.Deleting = true })
	}
}

// AddPod stores a Pod that somebody else has made. owner is the Job that controls it, "" for none.
func (a *API) AddPod(owner types.UID, p events.Pod) events.Pod {
	p.UID, p.Version, p.Created, p.Orphan = a.name("pod"), a.tick(), a.Now(), owner == ""
	x := &pod{Pod: p, owner: owner, managed: owner != ""}
	a.pods[p.Name], a.names[p.Name] = x, true
	a.emitPod(x)
	return p
}

// UpdatePod changes a Pod and lets it go where it is deleted and nobody holds it.
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
	if uid := a.hears(p); uid != "" {
		a.emit(uid, events.PodGone{Pod: p.Pod})
	}
}

// SetValues makes the ConfigMap of that name, or replaces it; nil deletes it.
func (a *API) SetValues(name string, v *Values) {
	if delete(a.values, name); v != nil {
		a.values[name] = *v
	}
}

func (a *API) podNames() []string { return slices.Sorted(maps.Keys(a.pods)) }

func (a *API) tick() uint64 { a.version++; return a.version }

func (a *API) emitJob(uid types.UID) { a.emit(uid, events.JobObserved{Job: a.job(uid)}) }

func (a *API) emitPod(p *pod) {
	if uid := a.hears(p); uid != "" {
		a.emit(uid, events.PodObserved{Pod: p.Pod})
	}
}

func (a *API) emit(owner types.UID, e events.Event) {
	if a.Emit != nil {
		a.Emit(a.Key(owner), e)
	}
}

// hears is the Job whose key is told of the Pod, "" for none: its controller, of an orphan of ours the one that its
// generated label names, and of any other orphan the Job that selects it.
func (a *API) hears(p *pod) types.UID {
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

// matches says that the Job's selector matches the Pod.
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

// job is a copy that nobody else changes.
func (a *API) job(uid types.UID) events.Job {
	j := *a.jobs[uid]
	j.Status = *j.Status.DeepCopy()
	return j
}

// List is a snapshot of the Job: the Job first, then its Pods.
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
		if needed := p.Held || !p.Terminal() || p.Orphan || keepsFailed && p.Phase == events.Failed; needed && a.hears(p) == uid {
			seen := p.Pod
			seen.End = nil // the adapter leaves it out
			out.Pods = append(out.Pods, seen)
		}
	}
	return out
}
