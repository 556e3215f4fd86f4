package progress

import (
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Board is what has been seen of some Jobs. The zero value has seen none. It is not for several goroutines at once.
type Board struct {
	jobs  []*job // in the order in which they were seen first
	byUID map[types.UID]*job
	// early are Pods, by their owners' UIDs, that were seen before them.
	early map[types.UID]map[types.UID]indexedPod
	// namespace is that of all Jobs; "" once there are several, and then each is called by its namespace, too.
	namespace string
}

// SawJob takes in a Job as it is at now. A Job that comes again under its name, but with another UID, is another one.
func (b *Board) SawJob(j *batchv1.Job, now time.Time) {
	k := b.byUID[j.UID]
	if k == nil {
		k = &job{namespace: Clean(j.Namespace, maxName), name: Clean(j.Name, maxName), pods: b.early[j.UID]}
		delete(b.early, j.UID)
		if b.byUID == nil {
			b.byUID = map[types.UID]*job{}
		}
		b.byUID[j.UID] = k
		if len(b.jobs) == 0 {
			b.namespace = k.namespace
		} else if b.namespace != k.namespace {
			b.namespace = ""
		}
		b.jobs = append(b.jobs, k)
	}
	k.saw(j, now)
}

// JobGone takes in that a Job has been deleted. Its line stays and says so.
func (b *Board) JobGone(uid types.UID) {
	if k := b.byUID[uid]; k != nil {
		k.deleted, k.active = true, 0
		k.pods, k.podsChanged = nil, true
	}
}

// Forget takes a Job's line away.
func (b *Board) Forget(uid types.UID) {
	if k := b.byUID[uid]; k != nil {
		delete(b.byUID, uid)
		b.jobs = slices.DeleteFunc(b.jobs, func(other *job) bool { return other == k })
	}
}

// ForgetPods is for before all Pods that there are are shown again, some of which may have gone unseen.
func (b *Board) ForgetPods() {
	b.early = nil
	for _, k := range b.jobs {
		k.pods, k.podsChanged = nil, true
	}
}

// SawPod takes in a Pod, or that it is gone. Only Pods of Indexed Jobs count, and they need not be all: what they add to the
// status of a Job is which of its indexes run, and which have failed and are going to be tried again. So whoever watches may
// leave out those that have succeeded. A Pod may be seen before its Job.
func (b *Board) SawPod(p *corev1.Pod, gone bool) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return
	}
	k := b.byUID[owner.UID]
	pods := b.early[owner.UID]
	if k != nil {
		pods, k.podsChanged = k.pods, true
	}
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	over := gone || p.Status.Phase == corev1.PodSucceeded
	if err != nil || index < 0 || over && (k == nil || p.Status.Phase == corev1.PodFailed) {
		if delete(pods, p.UID); len(pods) == 0 {
			delete(b.early, owner.UID)
		}
		return
	}
	seen := indexedPod{index: index, failed: p.Status.Phase == corev1.PodFailed}
	if over {
		seen.leaves = untilCounted
	}
	if pods == nil {
		pods = map[types.UID]indexedPod{}
	}
	pods[p.UID] = seen
	if k != nil {
		k.pods = pods
		return
	}
	if b.early == nil {
		b.early = map[types.UID]map[types.UID]indexedPod{}
	}
	b.early[owner.UID] = pods
}

// label is how the board calls a Job.
func (b *Board) label(k *job) string {
	if b.namespace == "" && k.namespace != "" {
		return k.namespace + "/" + k.name
	}
	return k.name
}
