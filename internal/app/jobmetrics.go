package app

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/internal/engine"
)

// jobMetrics are the metrics of Kubernetes' own Job controller under its names, labels and buckets (1.36,
// pkg/controller/job/metrics), so that dashboards and alerts built on them keep working. docs/operations.md lists the differences
// in meaning.
type jobMetrics struct {
	syncs           *prometheus.CounterVec
	syncTime        *prometheus.HistogramVec
	finished        *prometheus.CounterVec
	podsFinished    *prometheus.CounterVec
	indexesFinished *prometheus.CounterVec
	handled         *prometheus.CounterVec
	created         *prometheus.CounterVec
	held            *prometheus.CounterVec

	results *results // jobstream's own
}

func newJobMetrics(m *metrics) *jobMetrics {
	return &jobMetrics{
		results: newResults(m),
		syncs:   m.counter("job_controller_job_syncs_total", "The number of job syncs", "completion_mode", "result", "action"),
		syncTime: m.histogram("job_controller_job_sync_duration_seconds", "The time it took to sync a job",
			prometheus.ExponentialBuckets(0.004, 2, 15), "completion_mode", "result", "action"),
		finished:        m.counter("job_controller_jobs_finished_total", "The number of finished jobs", "completion_mode", "result", "reason"),
		podsFinished:    m.counter("job_controller_job_pods_finished_total", "The number of finished Pods that are fully tracked", "completion_mode", "result"),
		indexesFinished: m.counter("job_controller_job_finished_indexes_total", "The number of finished indexes.", "status", "backoffLimit"),
		handled:         m.counter("job_controller_pod_failures_handled_by_failure_policy_total", "The number of failed Pods handled by failure policy, by the action of the matched rule.", "action"),
		created:         m.counter("job_controller_job_pods_creation_total", "The number of Pods created by the Job controller labelled with a reason for the Pod creation.", "reason", "status"),
		held: m.counter("job_controller_terminated_pods_tracking_finalizer_total",
			"The number of Pods whose finalizer batch.kubernetes.io/job-tracking was removed: only event=\"delete\" is counted.", "event"),
	}
}

// synced records every turn of the Job function: what Kubernetes calls a sync of a Job.
func (m *jobMetrics) synced(t engine.Turned) {
	if errors.Is(t.Err, context.Canceled) {
		return // the program is stopping: not an error of the Job
	}
	result := "success"
	if t.Err != nil {
		result = "error"
	}
	labels := []string{completionMode(t), result, action(t.Tried)}
	m.syncs.WithLabelValues(labels...).Inc()
	m.syncTime.WithLabelValues(labels...).Observe(t.Duration.Seconds())
}

// completionMode returns the mode from the facts and effects of a turn: "unknown" if it only had a timer or a refusal and created
// no Pod.
func completionMode(t engine.Turned) string {
	for _, e := range t.Facts {
		switch e := e.(type) {
		case events.JobObserved:
			return modeLabel(e.Job.Indexed)
		case events.JobListed:
			if e.Job != nil {
				return modeLabel(e.Job.Indexed)
			}
		case events.JobPartListed:
			if e.Job != nil {
				return modeLabel(e.Job.Indexed)
			}
		case events.PodObserved:
			return modeLabel(e.Pod.Index != events.NoIndex)
		}
	}
	for _, e := range t.Tried {
		if e, ok := e.(effect.CreatePod); ok {
			return modeLabel(e.Index != events.NoIndex)
		}
	}
	return "unknown"
}

func modeLabel(indexed bool) string {
	if indexed {
		return string(batchv1.IndexedCompletion)
	}
	return string(batchv1.NonIndexedCompletion)
}

// action returns what a turn did to Pods. Deletions come first, as in Kubernetes, which never does both in one sync. Kubernetes'
// fourth action, "reconciling", waits for its own writes to show up; a turn sees its own at once.
func action(tried []effect.Effect) string {
	out := "tracking"
	for _, e := range tried {
		switch e.(type) {
		case effect.DeletePod:
			return "pods_deleted"
		case effect.CreatePod:
			out = "pods_created"
		}
	}
	return out
}

// StatusWritten implements act.Meter: what the status gained is what has finished.
func (m *jobMetrics) StatusWritten(before, after *batchv1.Job, handled map[batchv1.PodFailurePolicyAction]int) {
	mode, succeeded := modeLabel(indexed(after)), after.Status.Succeeded-before.Status.Succeeded
	if indexed(after) {
		limit := "global"
		if after.Spec.BackoffLimitPerIndex != nil {
			limit = "perIndex"
			add(m.indexesFinished, moreIndexes(after, text(before.Status.FailedIndexes), text(after.Status.FailedIndexes)), "failed", limit)
		}
		// Not the counter: it shrinks with the Job.
		succeeded = moreIndexes(after, before.Status.CompletedIndexes, after.Status.CompletedIndexes)
		add(m.indexesFinished, succeeded, "succeeded", limit)
	}
	add(m.podsFinished, succeeded, mode, "succeeded")
	add(m.podsFinished, after.Status.Failed-before.Status.Failed, mode, "failed")
	if end := verdict(after); end != nil && verdict(before) == nil {
		result := "succeeded"
		if end.Type == batchv1.JobFailed {
			result = "failed"
		}
		add(m.finished, 1, mode, result, end.Reason)
	}
	for action, n := range handled {
		add(m.handled, int32(n), string(action))
	}
	m.results.statusWritten(before, after)
}

// PodCreation implements act.Meter.
func (m *jobMetrics) PodCreation(j *batchv1.Job, err error) {
	switch {
	case err == nil:
		add(m.created, 1, creationReason(j), "succeeded")
	case apierrors.IsAlreadyExists(err), // nearly always the reconciler's own Pod, from a repeated create
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // the Pod is no longer wanted
	default:
		add(m.created, 1, creationReason(j), "failed")
	}
}

// creationReason is Kubernetes' (recordJobPodsCreationTotal), derived from the Job as last read.
func creationReason(j *batchv1.Job) string {
	failed := j.Status.Failed > 0
	if u := j.Status.UncountedTerminatedPods; u != nil {
		failed = failed || len(u.Failed) > 0
	}
	onlyFailed := j.Spec.PodReplacementPolicy != nil && *j.Spec.PodReplacementPolicy == batchv1.Failed
	switch {
	case failed && onlyFailed:
		return "recreate_failed"
	case failed || j.Status.Terminating != nil && *j.Status.Terminating > 0:
		return "recreate_terminating_or_failed"
	}
	return "new"
}

// FinalizerRemoved implements act.Meter. The other event, "add", would be the first observation of a held Pod that has ended: to
// know a first observation takes a memory of every Pod, which a reconciler that may be replaced at any time does not have.
func (m *jobMetrics) FinalizerRemoved() { add(m.held, 1, "delete") }

// add ignores a negative difference: counters panic when they are to decrease.
func add(c *prometheus.CounterVec, gained int32, labels ...string) {
	if gained > 0 {
		c.WithLabelValues(labels...).Add(float64(gained))
	}
}

func indexed(j *batchv1.Job) bool {
	return j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
}

// moreIndexes is how many indexes the list has gained, of those that the Job has now. A Job that shrinks loses the others
// from its lists, and does them again if it grows.
func moreIndexes(j *batchv1.Job, before, after string) int32 {
	if before == after || j.Spec.Completions == nil {
		return 0
	}
	was, err := intervals.Parse(before)
	if err != nil {
		return 0 // another client's text: better nothing than all of it
	}
	is, err := intervals.Parse(after)
	if err != nil {
		return 0
	}
	n := int(*j.Spec.Completions)
	return int32(is.Below(n).Len() - was.Below(n).Len())
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// verdict returns the condition that ended the Job, or nil.
func verdict(j *batchv1.Job) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}
