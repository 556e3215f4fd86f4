package app

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

// waits are the buckets of delays after failed Pods: 10 s doubling to 10 min by default, of which each has its own; and what the
// flags or an annotation allow beside them.
var waits = []float64{1, 2, 5, 10, 20, 40, 80, 160, 320, 600, 1800, 3600}

// results are the metrics of how Jobs end in each namespace, and how long they wait for retries.
type results struct {
	tenants  *tenants
	finished *prometheus.CounterVec
	waits    *prometheus.HistogramVec
	limits   job.Limits // the reconciler's
}

func newResults(m *metrics) *results {
	r := &results{
		tenants: m.tenants, limits: job.DefaultLimits(),
		finished: m.counter("jobstream_jobs_finished_total", "Jobs that have ended, counted when the API server has stored the end: once, unless its "+
			"answer is lost, then not at all.", namespaceLabel, "result"),
		waits: m.histogram("jobstream_retry_wait_seconds", "Delays before the next Pod after a failed one, each counted as it begins. Jobs with a "+
			"backoffLimitPerIndex are not included.", waits),
	}
	m.tenants.with(r.finished)
	r.waits.WithLabelValues()
	return r
}

// statusWritten follows a successful write of a Job's status. Both series of the namespace begin at 0, with the Job's first status.
func (r *results) statusWritten(before, after *batchv1.Job) {
	ended := map[events.JobResult]float64{}
	if end := verdict(after); end != nil && verdict(before) == nil {
		result := events.JobSucceeded
		if end.Type == batchv1.JobFailed {
			result = events.JobFailed
		}
		ended[result]++
	}
	r.tenants.in(after.Namespace, func(label string) {
		for _, result := range []events.JobResult{events.JobSucceeded, events.JobFailed} {
			r.finished.WithLabelValues(label, string(result)).Add(ended[result])
		}
	})
	if slices.ContainsFunc(after.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == v1alpha1.BackingOffCondition && c.Status == corev1.ConditionTrue
	}) {
		r.backsOff(before, after)
	}
}

// backsOff observes the delay of a Job that waits, if this status has begun it: it records a failure that the one before did not.
func (r *results) backsOff(before, after *batchv1.Job) {
	was, is := events.ProjectJob(before, events.Claim{}), events.ProjectJob(after, events.Claim{})
	if is.Backoff.Failures > 0 && !is.Backoff.Equal(was.Backoff) {
		r.waits.WithLabelValues().Observe(r.limits.PodBackoffOf(is).Delay(is.Backoff.Failures).Seconds())
	}
}
