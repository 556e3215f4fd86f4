package progress

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/intervals"
)

// phase is what a Job does now, in one word.
type phase string

const (
	waiting    phase = "Waiting" // has not started, or has no Pod now because the next one is delayed
	running    phase = "Running"
	suspended  phase = "Suspended"
	completing phase = "Completing" // its result is decided; its last Pods are being counted
	failing    phase = "Failing"
	complete   phase = "Complete"
	failed     phase = "Failed"
	deleted    phase = "Deleted" // before it had ended
)

// job is what has been observed of one Job.
type job struct {
	namespace, name string

	indexed bool
	// completions is the number of successes it needs, -1 for a work queue, which needs no particular number.
	completions, parallelism  int
	active, succeeded, failed int
	terminating               int

	isSuspended, deleted bool
	decided              batchv1.JobConditionType // SuccessCriteriaMet or FailureTarget
	result               batchv1.JobConditionType // Complete or Failed
	reason, message      string                   // why it fails or has failed
	obstacle             string                   // why it makes no progress

	started, ended time.Time // by the clock of the cluster, in whole seconds
	rate           rate

	completeIndexes, failedIndexes indexes
	pods                           map[types.UID]indexedPod
	podsChanged                    bool
	runningIndexes, failingIndexes intervals.Set // of pods

	told telling
}

type indexedPod struct {
	index  int
	failed bool
	// leaves is for how many more observations of the Job the Pod is shown; 0 while the Pod exists.
	leaves int
}

// untilCounted is for how many observations of a Job an ended Pod is still shown as running. The Job's status needs one, rarely
// two, until it has the Pod's index; meanwhile the index would look as if it waited again.
const untilCounted = 2

// ageing takes in that the Job was seen once more.
func (k *job) ageing() {
	for uid, p := range k.pods {
		switch p.leaves {
		case 0:
		case 1:
			delete(k.pods, uid)
		default:
			p.leaves--
			k.pods[uid] = p
		}
	}
}

func (k *job) saw(j *batchv1.Job, now time.Time) {
	k.indexed = ptr.Deref(j.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
	k.completions, k.parallelism = int(ptr.Deref(j.Spec.Completions, -1)), int(ptr.Deref(j.Spec.Parallelism, 1))
	k.isSuspended = ptr.Deref(j.Spec.Suspend, false)
	st := &j.Status
	k.active, k.succeeded, k.failed = max(0, int(st.Active)), max(0, int(st.Succeeded)), max(0, int(st.Failed))
	k.terminating = max(0, int(ptr.Deref(st.Terminating, 0)))
	k.started, k.ended = time.Time{}, time.Time{}
	if st.StartTime != nil {
		k.started = st.StartTime.Time
	}
	k.decided, k.result, k.reason, k.message, k.obstacle = "", "", "", "", ""
	for _, c := range st.Conditions {
		if c.Status == corev1.ConditionTrue {
			k.sawCondition(c)
		}
	}
	if st.CompletionTime != nil {
		k.ended = st.CompletionTime.Time
	}
	if k.indexed {
		k.completeIndexes.read(st.CompletedIndexes, k.completions)
		k.failedIndexes.read(ptr.Deref(st.FailedIndexes, ""), k.completions)
		k.ageing()
		k.podsChanged = true
	}
	k.rate.saw(k.done(), k.isSuspended || k.started.IsZero(), now)
}

func (k *job) sawCondition(c batchv1.JobCondition) {
	switch c.Type {
	case batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget:
		k.decided = c.Type
	case batchv1.JobComplete, batchv1.JobFailed:
		k.result, k.ended = c.Type, c.LastTransitionTime.Time
	case v1alpha1.RefusedCondition, v1alpha1.UnsupportedCondition, v1alpha1.BackingOffCondition:
		if c.Type == v1alpha1.BackingOffCondition && k.obstacle != "" {
			return // it would not go on after the delay
		}
		k.obstacle = Clean(strings.TrimPrefix(string(c.Type), v1alpha1.Group+"/")+": "+c.Reason+": "+c.Message, maxMessage)
		return
	default:
		return
	}
	if c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobFailed {
		k.reason, k.message = Clean(c.Reason, maxName), Clean(c.Message, maxMessage)
	}
}

// phase returns what the Job does. Final states come first.
func (k *job) phase() phase {
	switch {
	case k.result == batchv1.JobComplete:
		return complete
	case k.result == batchv1.JobFailed:
		return failed
	case k.deleted:
		return deleted
	case k.decided == batchv1.JobFailureTarget:
		return failing
	case k.decided == batchv1.JobSuccessCriteriaMet:
		return completing
	case k.isSuspended:
		return suspended
	case k.active > 0:
		return running
	}
	return waiting
}

func (k *job) over() bool { return k.result != "" || k.deleted }

// done returns how much of its work the Job has finished, successfully or not.
func (k *job) done() int { return k.succeeded + k.failedIndexes.set.Len() }

// left returns how much work remains, 0 if unknown.
func (k *job) left() int { return max(0, k.completions-k.done()) }

// elapsed is the time from the Job's start to its end or now; 0 where it has not started.
func (k *job) elapsed(now time.Time) time.Duration {
	switch {
	case k.started.IsZero():
		return 0
	case !k.ended.IsZero():
		now = k.ended
	}
	return max(0, now.Sub(k.started)) // the cluster's clock may be ahead of the local one
}

// lookAtPods sorts the indexes of the Pods. An index that runs again is not failing.
func (k *job) lookAtPods() {
	if !k.podsChanged {
		return
	}
	k.podsChanged = false
	if !k.indexed {
		k.pods = nil // Pods of a Job without indexes do not count, even with the annotation
	}
	var run, fail []int
	for _, p := range k.pods {
		switch {
		case p.index >= k.completions || k.completeIndexes.set.Has(p.index) || k.failedIndexes.set.Has(p.index):
		case p.failed:
			fail = append(fail, p.index)
		default:
			run = append(run, p.index)
		}
	}
	k.runningIndexes = intervals.Of(run...)
	k.failingIndexes = intervals.Of(slices.DeleteFunc(fail, k.runningIndexes.Has)...)
}
