package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster/act"
)

// lateness are the buckets of delays after a nominal time: milliseconds if all is well, hours after a downtime.
var lateness = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

// skew are the buckets of Kubernetes (1.36, pkg/controller/cronjob/metrics), and some below its first, a second.
var skew = append([]float64{.01, .025, .05, .1, .25, .5}, prometheus.ExponentialBuckets(1, 2, 10)...)

// scheduleMetrics are the reconciler's metrics of ScheduledJobs.
type scheduleMetrics struct {
	tenants   *tenants
	ticks     *prometheus.CounterVec
	late      *prometheus.HistogramVec
	skew      *prometheus.HistogramVec
	announced *prometheus.CounterVec // see announcements.go
}

func newScheduleMetrics(m *metrics) *scheduleMetrics {
	s := &scheduleMetrics{
		tenants:   m.tenants,
		announced: m.announced,
		ticks: m.counter("jobstream_ticks_total", "Nominal times of ScheduledJobs by verdict, counted when the API server has stored the verdict: once, "+
			"unless its answer is lost, then not at all.", namespaceLabel, "verdict"),
		late: m.histogram("jobstream_tick_job_lateness_seconds", "Time from a nominal time to the API server's answer that its Job is created, by this "+
			"program's clock. A repeated creation is not counted.", lateness, namespaceLabel),
		skew: m.histogram("cronjob_controller_job_creation_skew_duration_seconds",
			"Time between when a cronjob is scheduled to be run, and when the corresponding job is created", skew),
	}
	m.tenants.with(s.ticks, s.late)
	s.skew.WithLabelValues()
	return s
}

// meter is what the reconciler counts of what it does.
type meter struct {
	*jobMetrics
	*scheduleMetrics
}

var _ act.Meter = meter{}

// JobCreated implements act.Meter. A clock that was set back makes no Job early.
func (s *scheduleMetrics) JobCreated(namespace string, nominal, at time.Time) {
	late := max(0, at.Sub(nominal).Seconds())
	s.skew.WithLabelValues().Observe(late)
	s.tenants.in(namespace, func(label string) { s.late.WithLabelValues(label).Observe(late) })
}

// verdicts are the values of the label; others stands for a verdict that a forged state contains.
var verdicts = []events.Verdict{events.Started, events.Skipped, events.Missed, events.Blocked, events.NotCreated}

// ScheduleStatusWritten implements act.Meter: a verdict counts when it enters the status. All series of the namespace begin at 0, if
// possible before the first verdict: Prometheus sees no increase in one that begins with 1.
func (s *scheduleMetrics) ScheduleStatusWritten(before, after *v1alpha1.ScheduledJob, dropped []events.TickDecided) {
	for _, v := range dropped {
		s.announced.WithLabelValues(events.PublicType(v), announcedGap).Inc()
	}
	given := newVerdicts(before.Status.Recent, after.Status.Recent, dropped)
	s.tenants.in(after.Namespace, func(label string) {
		for _, verdict := range verdicts {
			s.ticks.WithLabelValues(label, string(verdict)).Add(given[verdict])
			delete(given, verdict)
		}
		for _, n := range given {
			s.ticks.WithLabelValues(label, others).Add(n)
		}
		s.late.WithLabelValues(label)
	})
}

// newVerdicts returns to how many nominal times each verdict has been given between two statuses: by what the later one lists, and by
// what did not find room in it.
func newVerdicts(before, after []v1alpha1.TickVerdict, dropped []events.TickDecided) map[events.Verdict]float64 {
	known, out := map[[2]int64]bool{}, map[events.Verdict]float64{}
	add := func(first time.Time, last *metav1.Time, v, reason string, count int64) {
		times := [2]int64{first.Unix()}
		if last != nil && !last.IsZero() {
			times[1] = last.Unix()
		}
		if known[times] || reason == events.ReasonManual || reason == events.ReasonBackfill { // a user's Job decides no nominal time
			return
		}
		known[times] = true
		out[events.Verdict(v)] += float64(max(0, count)) // a forged state may hold any number
	}
	for _, v := range before {
		add(v.Time.Time, v.Until, v.Verdict, v.Reason, 0)
	}
	for _, v := range after {
		add(v.Time.Time, v.Until, v.Verdict, v.Reason, v.Count)
	}
	for _, v := range dropped {
		add(v.Nominal, &metav1.Time{Time: v.Until}, string(v.Verdict), v.Reason, v.Count)
	}
	return out
}
