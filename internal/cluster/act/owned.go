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

// An effect names its object, and any client that can write on the bus can cause an effect on any object. So the Actor changes
// only what belongs to jobstream according to the API server: the Job is claimed, and the Pod is that Job's.
//
//	the Job     in jobCache, or read once: spec.managedBy never changes, and a UID never comes back
//	the Pod     its owner is a precondition of the patches (ownerIs); before a plain deletion, and where the precondition
//	            failed, it is read, unless an answer has shown it before
//
// In the usual case that costs no request: a reconciler that removes a Pod's finalizer has written the Pod's UID into the status of
// the Job before, and one that deletes a Pod has usually created it, or removed its finalizer.

// ownedVerdicts, ownedPods and ownedRuns are how many Jobs, Pods and Jobs of ScheduledJobs are cached, 100 to 200 bytes each.
const (
	ownedVerdicts = 16384
	ownedPods     = 32768
	ownedRuns     = 16384
)

// verdict is the owner of a Job.
type verdict int

const (
	foreign verdict = iota // managed by another controller
	claimed
	gone // it does not exist (any more)
)

// owned caches permanently which Jobs are claimed, and which Job or ScheduledJob controls a Pod or a Job according to the API
// server.
type owned struct {
	jobs *lru.Cache // named -> verdict
	pods *lru.Cache // types.UID -> identity of the Job
	runs *lru.Cache // types.UID of a Job -> identity of the ScheduledJob
}

// named is a Job by its identity, and by the name under which it was looked for and not found: that name comes from a Pod, into
// which any user may have written it. It is "" if the Job was found.
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

// saw records the owner of a Pod, from an answer of the API server.
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

// sawRun records the ScheduledJob that controls a Job.
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

// forgetJob drops a Job that is gone. That it was claimed stays: the finalizers of its Pods are still to be removed.
func (a *Actor) forgetJob(key events.Key) {
	if a.knownClaimed(key) {
		a.owned.jobs.Add(named{Identity: cluster.IdentityOfKey(key)}, claimed)
	}
	a.jobs.forget(cluster.IdentityOfKey(key))
}

// knownClaimed reports whether the Job of the key is known to be claimed, without a request.
func (a *Actor) knownClaimed(key events.Key) bool {
	if j := a.jobs.peek(cluster.IdentityOfKey(key)); j != nil {
		return a.claim.Matches(j)
	}
	v, known := a.owned.job(cluster.IdentityOfKey(key), "")
	return known && v == claimed
}

// whose finds out the owner of the key's Job, which has that name if it exists.
func (a *Actor) whose(ctx context.Context, key events.Key, name string) (verdict, error) {
	if a.knownClaimed(key) {
		return claimed, nil
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
	if a.claim.Matches(j) {
		v = claimed
	}
	a.owned.jobs.Add(named{Identity: cluster.IdentityOfKey(key)}, v)
	return v, nil
}

// changeable reads the Pod, and returns it if the Job of the key may change its finalizer, release it, or delete it: the Job
// controls it, exists and is claimed. For a Job that is gone the finalizer may only be removed (unhold), as Kubernetes' own
// controller does then. nil means that the Job may not, and then the facts have the reason: the Pod is gone, or does not belong to
// the Job; or it does, and the Job is gone.
//
// An orphan counts for no Job: it may be freed of its finalizer, or deleted, by the Job that its label names, by any claimed Job if
// it carries the managed label, and by a Job whose selector matches.
func (a *Actor) changeable(ctx context.Context, key events.Key, name string, uid types.UID, unhold bool) (*corev1.Pod, []events.Event, error) {
	p, err := a.getPod(ctx, key, name)
	if err != nil || p == nil || p.UID != uid {
		return nil, missedPod(name, uid), err
	}
	a.owned.saw(p)
	ref := metav1.GetControllerOf(p)
	if ref == nil {
		j := a.jobs.peek(cluster.IdentityOfKey(key))
		if _, marked := p.Labels[v1alpha1.ManagedLabel]; marked || events.OwnerUID(p) == key.UID || j != nil && a.claim.Matches(j) && selects(j, p) {
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
	case v == claimed, v == gone && unhold:
		return p, nil, nil
	case v == gone:
		return nil, missedJob(ref.Name), nil // a Job that gets this fact removes the Pod's finalizer
	}
	return nil, missedPod(name, uid), nil
}

// controlledByAnother reports whether the Pod belongs to another owner than the Job of the key.
func controlledByAnother(p *corev1.Pod, key events.Key) bool {
	return metav1.GetControllerOf(p) != nil && events.OwnerUID(p) != key.UID
}

// ownerIs is a precondition in a strategic merge patch: owner references are merged by their UID. A reference that the Pod has
// does not change; one that it lacks would be added without a name and a kind, which the API server finds invalid.
func ownerIs(key events.Key) []any { return []any{map[string]types.UID{"uid": key.UID}} }
