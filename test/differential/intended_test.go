package differential_test

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	upstreamjob "k8s.io/kubernetes/pkg/controller/job"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/test/differential/upstream"
	"github.com/jobstream/jobstream/test/oracle/draw"
)

// difference reports whether a Job and its Pods are in one of the tables below.
type difference = func(j *batchv1.Job, pods []*corev1.Pod) bool

// intended are the cases in which both differ, and why that is right.
var intended = map[string]difference{
	"the Job has finished: syncJob leaves its Pods to other parts of the controller": func(j *batchv1.Job, _ []*corev1.Pod) bool {
		return is(j, batchv1.JobComplete) || is(j, batchv1.JobFailed)
	},
	"a Job whose deadline is zero starts before it fails": func(j *batchv1.Job, _ []*corev1.Pod) bool {
		return j.Spec.ActiveDeadlineSeconds != nil && *j.Spec.ActiveDeadlineSeconds == 0 && j.Status.StartTime == nil
	},
	"a Pod whose index fails after the end of the Job was declared: the built-in controller has removed its finalizer by then": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		over := is(j, batchv1.JobSuccessCriteriaMet) || is(j, batchv1.JobFailureTarget)
		return over && j.Spec.BackoffLimitPerIndex != nil && slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return len(p.Finalizers) > 0 && p.Status.Phase != corev1.PodSucceeded && (p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil)
		})
	},
	"a Pod that was listed as failed while it terminated, and succeeds after all, has failed; the built-in controller also counts a success": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		u := j.Status.UncountedTerminatedPods
		return u != nil && slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodSucceeded && slices.Contains(u.Failed, p.UID)
		})
	},
	"the built-in controller takes another time for the end of a Pod: see TestFinishedTime": func(_ *batchv1.Job, pods []*corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return odd(p) && (p.DeletionTimestamp != nil || events.ProjectPod(p).Terminal())
		})
	},
	"an index that waits after a failure gives its place to the next one (docs/conformance.md)": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		return j.Spec.BackoffLimitPerIndex != nil && slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
			return len(p.Finalizers) > 0 && (p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil) && rests(p) > 0
		})
	},
	"a second success of an index does not end the wait after a failure": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		seen, again, failed := map[int]bool{}, false, false
		for _, p := range projected(pods) {
			if p.Held && p.Phase == events.Succeeded {
				again = again || seen[p.Index] || recorded(j, p.Index)
				seen[p.Index] = true
			}
			failed = failed || p.Held && (p.Phase == events.Failed || p.Deleting)
		}
		return *j.Spec.CompletionMode == batchv1.IndexedCompletion && again && failed
	},
	"jobstream deletes a Pod whose index is over; the built-in controller lets it run in the place of a needed one": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		return slices.ContainsFunc(projected(pods), func(p events.Pod) bool { return !p.Terminal() && !p.Deleting && over(j, pods, p.Index) })
	},
}

// unreachable are the states that no controller meets, though the API server would store them.
var unreachable = map[string]difference{
	"no controller lists a terminating Pod where only failed ones count, unless the Job fails": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		u := j.Status.UncountedTerminatedPods
		return u != nil && *j.Spec.PodReplacementPolicy == batchv1.Failed && !is(j, batchv1.JobFailureTarget) && slices.ContainsFunc(projected(pods), func(p events.Pod) bool {
			return p.Deleting && !p.Terminal() && slices.Contains(slices.Concat(u.Failed, u.Succeeded), p.UID)
		})
	},
	"a failed Pod without the finalizer was judged by the podFailurePolicy while it was held": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		return j.Spec.PodFailurePolicy != nil && slices.ContainsFunc(projected(pods), func(p events.Pod) bool { return p.Phase == events.Failed && !p.Held })
	},
	"a failed Pod is not listed before the next one of its index has taken over": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		u := j.Status.UncountedTerminatedPods
		return u != nil && j.Spec.BackoffLimitPerIndex != nil && slices.ContainsFunc(projected(pods), func(p events.Pod) bool {
			return p.Held && (p.Phase == events.Failed || p.Deleting) && slices.Contains(u.Failed, p.UID)
		})
	},
	"of two failed Pods of one index the later one has seen more failures": func(j *batchv1.Job, pods []*corev1.Pod) bool {
		last := map[int]events.Pod{}
		for _, p := range projected(pods) {
			if !p.Held || p.Phase != events.Failed && !p.Deleting {
				continue
			}
			q, two := last[p.Index]
			if two && j.Spec.BackoffLimitPerIndex != nil && (p.IndexFailures <= q.IndexFailures || !p.Finished.After(q.Finished)) {
				return true
			}
			last[p.Index] = p
		}
		return false
	},
}

// rests returns how long the built-in controller would not retry the index of this failed Pod.
func rests(p *corev1.Pod) time.Duration {
	return upstream.RemainingTimePerIndex(klog.Logger{}, clocktesting.NewFakeClock(draw.Now), upstreamjob.DefaultJobPodFailureBackOff,
		upstreamjob.MaxJobPodFailureBackOff, p)
}

// recorded reports whether the status of the Indexed Job has the index as completed or failed.
func recorded(j *batchv1.Job, index int) bool {
	for _, text := range []string{j.Status.CompletedIndexes, deref(j.Status.FailedIndexes)} {
		if set, err := intervals.Parse(text); err == nil && set.Has(index) {
			return true
		}
	}
	return false
}

// over reports whether the index has succeeded or failed, by the status or by a Pod that has just ended.
func over(j *batchv1.Job, pods []*corev1.Pod, index int) bool {
	return *j.Spec.CompletionMode == batchv1.IndexedCompletion && (recorded(j, index) || slices.ContainsFunc(projected(pods), func(p events.Pod) bool {
		fails := j.Spec.BackoffLimitPerIndex != nil && (p.Phase == events.Failed || p.Deleting)
		return p.Index == index && p.Held && (p.Phase == events.Succeeded || fails)
	}))
}

func is(j *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}
