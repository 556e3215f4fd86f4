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
	// namespace is that of all Jobs; "" once there are several, and then each is called by its namespace, too.
	namespace string
}

// SawJob takes in a Job as it is at now. A Job that comes again under its name, but with another UID, is another one.
func (b *Board) SawJob(j *batchv1.Job, now time.Time) {
	k := b.byUID[j.UID]
	if k == nil {
		k = &job{namespace: Clean(j.Namespace, maxName), name: Clean(j.Name, maxName)}
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
	for _, k := range b.jobs {
		k.pods, k.podsChanged = nil, true
	}
}

// SawPod takes in a Pod, or that it is gone. Only Pods of Indexed Jobs that have been seen count, and they need not be all:
// what they add to the status of a Job is which of its indexes run, and which have failed and are going to be tried again.
// So whoever watches may leave out those that have succeeded.
func (b *Board) SawPod(p *corev1.Pod, gone bool) {
	owner := metav1.GetControllerOfNoCopy(p)
	if owner == nil {
		return
	}
	k := b.byUID[owner.UID]
	if k == nil || !k.indexed {
		return
	}
	k.podsChanged = true
	index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || index < 0 || gone && p.Status.Phase == corev1.PodFailed {
		delete(k.pods, p.UID)
		return
	}
	if k.pods == nil {
		k.pods = map[types.UID]indexedPod{}
	}
	seen := indexedPod{index: index, failed: p.Status.Phase == corev1.PodFailed}
	if gone || p.Status.Phase == corev1.PodSucceeded {
		seen.leaves = untilCounted
	}
	k.pods[p.UID] = seen
}

// label is how the board calls a Job.
func (b *Board) label(k *job) string {
	if b.namespace == "" && k.namespace != "" {
		return k.namespace + "/" + k.name
	}
	return k.name
}
