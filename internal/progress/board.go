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

// Board is what has been observed of some Jobs. The zero value is empty. It is not safe for concurrent use.
type Board struct {
	jobs  []*job // in the order of their first observation
	byUID map[types.UID]*job
	// early are Pods, by their owners' UIDs, that were seen before them.
	early map[types.UID]map[types.UID]indexedPod
	// namespace is the namespace of all Jobs; "" once there are several, and then lines have the namespace, too.
	namespace string
}

// SawJob records the state of a Job at now. A Job with the same name and another UID is a different Job.
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

// JobGone records that a Job has been deleted. Its line stays and shows that.
func (b *Board) JobGone(uid types.UID) {
	if k := b.byUID[uid]; k != nil {
		k.deleted, k.active = true, 0
		k.pods, k.podsChanged = nil, true
	}
}

// Forget removes a Job's line.
func (b *Board) Forget(uid types.UID) {
	if k := b.byUID[uid]; k != nil {
		delete(b.byUID, uid)
		b.jobs = slices.DeleteFunc(b.jobs, func(other *job) bool { return other == k })
	}
}

// ForgetPods discards all Pods, before the caller lists them again: some may have been deleted unnoticed.
func (b *Board) ForgetPods() {
	b.early = nil
	for _, k := range b.jobs {
		k.pods, k.podsChanged = nil, true
	}
}

// SawPod records a Pod, or its deletion. Only Pods of Indexed Jobs count. They add to the Job's status which indexes run, and
// which have failed and will be retried, so the caller may leave out succeeded Pods. A Pod may be recorded before its Job.
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

// label returns the Job's name on the board.
func (b *Board) label(k *job) string {
	if b.namespace == "" && k.namespace != "" {
		return k.namespace + "/" + k.name
	}
	return k.name
}
