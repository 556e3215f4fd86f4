package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobstream/jobstream/internal/census"
)

// twinsPath is where a trigger serves the twins of kube-state-metrics' metrics of CronJobs, apart from its own: one Service in front
// of all triggers, scraped as one target, shows each ScheduledJob once.
const twinsPath = "/metrics/scheduledjobs"

// twinsAtOnce is how many clients may read that page at once, which may be large: two Prometheus servers, and two more.
const twinsAtOnce = 4

// censuses are those of a trigger's watchers.
type censuses []*census.Census

var (
	pendingPods    = prometheus.NewDesc("jobstream_pending_pods", "Pods of Jobs that are Pending now, by the reason that the scheduler or the kubelet gives. Every trigger sees every Pod: take the largest, not the sum.", []string{"reason"}, nil)
	backingOffJobs = prometheus.NewDesc("jobstream_backing_off_jobs", "Jobs that wait now to create the next Pod after a failed one. Every trigger sees every Job: take the largest, not the sum.", nil, nil)
)

// Describe implements prometheus.Collector.
func (censuses) Describe(to chan<- *prometheus.Desc) { to <- pendingPods; to <- backingOffJobs }

// Collect implements prometheus.Collector. Every reason has a value, even 0.
func (all censuses) Collect(to chan<- prometheus.Metric) {
	pending, backingOff := make([]int, len(census.Reasons)), 0
	for _, c := range all {
		for reason, n := range c.Pending() {
			pending[reason] += n
		}
		backingOff += c.BackingOff()
	}
	for i, reason := range census.Reasons {
		to <- prometheus.MustNewConstMetric(pendingPods, prometheus.GaugeValue, float64(pending[i]), reason)
	}
	to <- prometheus.MustNewConstMetric(backingOffJobs, prometheus.GaugeValue, float64(backingOff))
}

// podStarted records the start of the first Pod of a nominal time's Job.
func (m *metrics) podStarted(namespace string, nominal, at time.Time) {
	m.tenants.in(namespace, func(label string) { m.podsLate.WithLabelValues(label).Observe(max(0, at.Sub(nominal).Seconds())) })
}

// takeCensus adds what the censuses know.
func (m *metrics) takeCensus(all censuses) {
	m.registry.MustRegister(all)
	if m.twins != nil {
		m.twins.MustRegister(twins(all))
	}
}

// twins are kube-state-metrics' metrics of CronJobs (2.17, docs/metrics/workload/cronjob-metrics.md), of ScheduledJobs: the same
// names, labels and meanings, so that dashboards and alerts built on them keep working.
type twins censuses

// twin describes one of them.
func twin(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kube_cronjob_"+name, help, append([]string{namespaceLabel, "cronjob"}, labels...), nil)
}

var (
	twinInfo       = twin("info", "Info about a ScheduledJob.", "schedule", "concurrency_policy", "timezone")
	twinCreated    = twin("created", "Unix creation timestamp.")
	twinSuspend    = twin("spec_suspend", "Whether spec.suspend is true.")
	twinDeadline   = twin("spec_starting_deadline_seconds", "spec.startingDeadlineSeconds, absent if it is not set.")
	twinSuccessful = twin("spec_successful_job_history_limit", "How many complete Jobs are kept.")
	twinFailed     = twin("spec_failed_job_history_limit", "How many failed Jobs are kept.")
	twinActive     = twin("status_active", "Jobs that have been created and whose end is not counted yet.")
	twinNext       = twin("next_schedule_time", "The next nominal time; absent while there is none, as under suspend. In the past, it is the time that is late.")
	twinLast       = twin("status_last_schedule_time", "The nominal time of the latest Job that was created on schedule.")
	twinLastGood   = twin("status_last_successful_time", "When a Job last completed.")
)

// Describe implements prometheus.Collector.
func (twins) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{twinInfo, twinCreated, twinSuspend, twinDeadline, twinSuccessful, twinFailed, twinActive, twinNext, twinLast, twinLastGood} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (all twins) Collect(to chan<- prometheus.Metric) {
	for _, c := range all {
		for _, s := range c.Schedules() {
			collectTwin(s, to)
		}
	}
}

func collectTwin(s census.Schedule, to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.Namespace, s.Name}, labels...)...)
	}
	at := func(d *prometheus.Desc, t time.Time) {
		if !t.IsZero() {
			gauge(d, float64(t.Unix()))
		}
	}
	suspended := 0.0
	if s.Suspended {
		suspended = 1
	}
	gauge(twinInfo, 1, s.Schedule, s.ConcurrencyPolicy, s.TimeZone)
	at(twinCreated, s.Created)
	gauge(twinSuspend, suspended)
	if d := s.StartingDeadlineSeconds; d != nil {
		gauge(twinDeadline, float64(*d))
	}
	gauge(twinSuccessful, float64(s.SuccessfulLimit))
	gauge(twinFailed, float64(s.FailedLimit))
	gauge(twinActive, float64(s.Active))
	at(twinNext, s.Next)
	at(twinLast, s.LastScheduled)
	at(twinLastGood, s.LastSuccessful)
}
