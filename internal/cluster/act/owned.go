package act

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
)

// An effect names what it is about, and whoever can write on the bus can make us decide on one. So nothing is changed that is not
// ours by what the API server itself has said: the Job is one that was handed to us, the Pod is that Job's.
//
//	the Job     in jobCache, or asked for once: spec.managedBy never changes, and a UID never comes back
//	the Pod     its owner is a precondition of our patches (ownerIs); before a plain deletion, and where the precondition
//	            failed, it is read, unless an answer has shown it before
//
// In the usual case that costs no request: who releases a Pod has written its UID into the status of the Job before, and who
// deletes one has mostly made or released it.

// ownedVerdicts, ownedPods and ownedRuns are how many Jobs, Pods and Jobs of ScheduledJobs are remembered, 100 to 200 bytes each.
const (
	ownedVerdicts = 16384
	ownedPods     = 32768
	ownedRuns     = 16384
)

// verdict says whose a Job is.
type verdict int

const (
	foreign verdict = iota // handed to somebody else
	ours
	gone // it does not exist (any more)
)

// owned remembers for good whose Jobs are, and which Job or ScheduledJob the API server has shown to control a Pod or a Job.
type owned struct {
	jobs *lru.Cache // named -> verdict
	pods *lru.Cache // types.UID -> identity of the Job
	runs *lru.Cache // types.UID of a Job -> identity of the ScheduledJob
}

// named is a Job by its identity, and by the name under which it was looked for and not found: that one comes from a Pod, where
// anybody may have written it. It is "" where the Job was found.
type named struct {
	cluster.Identity
	name string
}

func newOwned() *owned {
	return &owned{jobs: lru.New(ownedVerdicts), pods: lru.New(ownedPods), runs: lru.New(ownedRuns)}
}

func (o *owned) job(of cluster.Identity, name string) (v verdict, known bool) {
	for _, key := range []named{{Identity: of}, {of, name}} {
		if got, ok := o.jobs.Get(key); ok {
			return got.(verdict), true
		}
	}
	return foreign, false
}

// saw notes whose a Pod is, from an answer of the API server.
func (o *owned) saw(p *corev1.Pod) {
	if owner := events.OwnerUID(p); owner != "" && metav1.GetControllerOf(p) != nil {
		o.pods.Add(p.UID, cluster.Identity{Namespace: p.Namespace, UID: owner})
	} else {
		o.pods.Remove(p.UID)
	}
}

func (o *owned) pod(uid types.UID, of cluster.Identity) bool {
	got, ok := o.pods.Get(uid)
	return ok && got.(cluster.Identity) == of
}

// sawRun notes whose a Job is that a ScheduledJob controls.
func (o *owned) sawRun(j *batchv1.Job) {
	if uid, _, ok := events.ProjectRun(j); ok {
		o.runs.Add(j.UID, cluster.Identity{Namespace: j.Namespace, UID: uid})
	} else {
		o.runs.Remove(j.UID)
	}
}

func (o *owned) run(uid types.UID, of cluster.Identity) bool {
	got, ok := o.runs.Get(uid)
	return ok && got.(cluster.Identity) == of
}

// forgetJob is for one that is gone. That it was ours stays: its Pods are still to be let go.
func (a *Actor) forgetJob(key events.Key) {
	if a.knownOurs(key) {
		a.owned.jobs.Add(named{Identity: cluster.IdentityOfKey(key)}, ours)
	}
	a.jobs.forget(cluster.IdentityOfKey(key))
}

// knownOurs says that the Job of the key was handed to us, without asking anybody.
func (a *Actor) knownOurs(key events.Key) bool {
	if j := a.jobs.peek(cluster.IdentityOfKey(key)); j != nil {
		return a.claim.Ours(j)
	}
	v, known := a.owned.job(cluster.IdentityOfKey(key), "")
	return known && v == ours
}

// whose finds out whose the Job of the key is, which has that name if it exists.
func (a *Actor) whose(ctx context.Context, key events.Key, name string) (verdict, error) {
	if a.knownOurs(key) {
		return ours, nil
	}
	if v, known := a.owned.job(cluster.IdentityOfKey(key), name); known {
		return v, nil
	}
	j, err := a.getJob(ctx, key, name)
	switch {
	case err != nil:
		return foreign, err
	case j == nil:
		a.owned.jobs.Add(named{cluster.IdentityOfKey(key), name}, gone)
		return gone, nil
	}
	a.jobs.saw(j)
	v := foreign
	if a.claim.Ours(j) {
		v = ours
	}
	a.owned.jobs.Add(named{Identity: cluster.IdentityOfKey(key)}, v)
	return v, nil
}

// changeable reads the Pod, and returns it if the Job of the key may let it go, hold or delete it: the Job controls it, exists and was
// handed to us. To let a Pod go, the Job may also be gone: that is what Kubernetes' own controller does then. nil means that it may
// not, and then the facts say why: the Pod is gone, or none of the Job's; or it is, and the Job is gone.
//
// An orphan counts for no Job: it may be let go, or deleted, by the one that its label remembers, by any of ours if it carries our
// mark, and by one whose selector matches.
func (a *Actor) changeable(ctx context.Context, key events.Key, name string, uid types.UID, release bool) (*corev1.Pod, []events.Event, error) {
	p, err := a.getPod(ctx, key, name)
	if err != nil || p == nil || p.UID != uid {
		return nil, missedPod(name, uid), err
	}
	a.owned.saw(p)
	ref := metav1.GetControllerOf(p)
	if ref == nil {
		j := a.jobs.peek(cluster.IdentityOfKey(key))
		if _, marked := p.Labels[v1alpha1.ManagedLabel]; marked || events.OwnerUID(p) == key.UID || j != nil && a.claim.Ours(j) && selects(j, p) {
			return p, nil, nil
		}
		return nil, missedPod(name, uid), nil
	}
	if events.OwnerUID(p) != key.UID {
		return nil, missedPod(name, uid), nil
	}
	switch v, err := a.whose(ctx, key, ref.Name); {
	case err != nil:
		return nil, nil, err
	case v == ours, v == gone && release:
		return p, nil, nil
	case v == gone:
		return nil, missedJob(ref.Name), nil // who hears that lets the Pod go
	}
	return nil, missedPod(name, uid), nil
}

// controlledByAnother says that the Pod belongs to somebody else than the Job of the key.
func controlledByAnother(p *corev1.Pod, key events.Key) bool {
	return metav1.GetControllerOf(p) != nil && events.OwnerUID(p) != key.UID
}

// ownerIs is a precondition in a strategic merge patch: owner references are merged by their UID. One that the Pod has does not
// change; one that it has not would be added without a name and a kind, which the API server finds invalid.
func ownerIs(key events.Key) []any { return []any{map[string]types.UID{"uid": key.UID}} }
