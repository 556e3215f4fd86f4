package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// metrics are the metrics of one program. Each has a registry of its own, so that several fit into one process.
type metrics struct {
	registry *prometheus.Registry

	turns       *prometheus.CounterVec
	turnTime    *prometheus.HistogramVec
	facts       *prometheus.CounterVec
	effects     *prometheus.CounterVec
	effectTime  *prometheus.HistogramVec
	quarantined *prometheus.CounterVec
	unreadFacts *prometheus.CounterVec
	published   *prometheus.CounterVec
	announced   *prometheus.CounterVec
	relists     prometheus.Counter
	partitions  *prometheus.GaugeVec
	members     *prometheus.GaugeVec
	spans       *prometheus.CounterVec
	jobs        *jobMetrics
	schedules   *scheduleMetrics
	podsLate    *prometheus.HistogramVec

	tenants *tenants
	// twins are served at a path of their own; nil serves none.
	twins *prometheus.Registry
}

// seconds are the buckets of durations: an idle API server answers in 5 ms, a turn with a thousand effects takes seconds.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), tenants: newTenants()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(),
	)
	return m
}

func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "jobstream_build_info", Help: "Always 1; the label says which version runs.",
		ConstLabels: prometheus.Labels{"version": Version()},
	}, func() float64 { return 1 })
}

// forTrigger adds the trigger's metrics.
func (m *metrics) forTrigger() {
	m.published = m.counter("jobstream_facts_published_total", "Facts handed to the bus.", "function", "type")
	m.relists = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "jobstream_relists_total", Help: "Complete lists of the cluster that the bus made necessary because facts may have been lost.",
	})
	m.registry.MustRegister(m.relists)
	m.podsLate = m.histogram("jobstream_tick_pod_lateness_seconds", "Time from a nominal time to the first observation of a started Pod of its Job, by this program's "+
		"clock. Every trigger sees every Pod: take the largest, not the sum.", lateness, namespaceLabel)
	m.tenants.with(m.podsLate)
}

// watches adds the number of failing lists and watches.
func (m *metrics) watches(failing func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "jobstream_watches_failing", Help: "Lists and watches of the cluster that fail just now, and are tried again, each by itself.",
	}, func() float64 { return float64(failing()) }))
}

// forReconciler adds the reconciler's metrics.
func (m *metrics) forReconciler() {
	m.turns = m.counter("jobstream_turns_total", "Turns by result: ok, retry (facts went back to the bus), quarantined, newer (left to a newer version), stopped, error.", "function", "result")
	m.turnTime = m.histogram("jobstream_turn_duration_seconds", "Time from the load of a state to the acknowledgement of its facts.", seconds, "function")
	m.facts = m.counter("jobstream_facts_total", "Facts that turns have folded, again ones included.", "function")
	m.effects = m.counter("jobstream_effects_total", "Effects by result: ok, refused (the API server said no), retry.", "function", "effect", "result")
	m.effectTime = m.histogram("jobstream_effect_duration_seconds", "Time that an effect took, the wait for a free request included.", seconds, "effect")
	m.quarantined = m.counter("jobstream_quarantined_total", "Messages that could not be read, or that the function broke on, and that were set aside.", "function")
	m.unreadFacts = m.counter("jobstream_unread_facts_total", "Facts of a type that this version does not know: upgrade the reconcilers, too. Inventory was taken instead.", "function")
	m.partitions = m.gauge("jobstream_partitions", "Partitions that this reconciler serves; over all reconcilers of a cluster they add up to 32.", "function")
	m.members = m.gauge("jobstream_members", "Live reconcilers of the cluster whose heartbeats this one receives.")
	m.announced = m.announcements()
	m.spans = m.counter("jobstream_spans_total", "Spans by result: exported, failed (the collector did not take them), dropped (too many were waiting).", "result")
	m.jobs = newJobMetrics(m)
	m.schedules = newScheduleMetrics(m)
}

// expect starts the function's alerting counters at 0: Prometheus sees no increase in a series that begins with 1.
func (m *metrics) expect(function string) {
	m.quarantined.WithLabelValues(function)
	m.unreadFacts.WithLabelValues(function)
}

// bus adds whether the bus and all streams are available.
func (m *metrics) bus(ready func() error) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "jobstream_bus_ready", Help: "1 while the bus is connected and all streams stand, else 0.",
	}, func() float64 {
		if ready() != nil {
			return 0
		}
		return 1
	}))
}

func (m *metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m *metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	if m.twins != nil {
		mux.Handle("GET "+twinsPath, promhttp.HandlerFor(m.twins, promhttp.HandlerOpts{MaxRequestsInFlight: twinsAtOnce}))
	}
	return mux
}

// turned records every finished turn.
func (m *metrics) turned(t engine.Turned) {
	m.turns.WithLabelValues(t.Function, turnResult(t.Err)).Inc()
	m.turnTime.WithLabelValues(t.Function).Observe(t.Duration.Seconds())
	m.facts.WithLabelValues(t.Function).Add(float64(len(t.Facts)))
	switch catalog.Name(t.Function) {
	case catalog.Job:
		m.jobs.synced(t)
	case catalog.ScheduledJob: // Kubernetes counts no syncs of CronJobs
	}
}

// setAside records every quarantined message, whether the bus or the engine rejected it.
func (m *metrics) setAside(function string) { m.quarantined.WithLabelValues(function).Inc() }

// unread records every fact whose type this version does not know.
func (m *metrics) unread(function string) { m.unreadFacts.WithLabelValues(function).Inc() }

// serves records how many partitions of the function this process serves, and how many members share them.
func (m *metrics) serves(function string, partitions, members int) {
	m.partitions.WithLabelValues(function).Set(float64(partitions))
	m.members.WithLabelValues().Set(float64(members))
}

func turnResult(err error) string {
	retry, newer, poisoned := engine.Retry{}, fn.ErrNewer{}, engine.Poisoned{}
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.As(err, &poisoned):
		return "quarantined"
	case errors.As(err, &newer):
		return "newer"
	case errors.As(err, &retry):
		return "retry"
	}
	return "error"
}

// counted is an Actor whose effects are counted.
func (m *metrics) counted(a engine.Actor) engine.Actor {
	return engine.ActorFunc(func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
		began := time.Now()
		answers, err := a.Act(ctx, key, e)
		m.effects.WithLabelValues(key.Function, e.Kind(), effectResult(answers, err)).Inc()
		m.effectTime.WithLabelValues(e.Kind()).Observe(time.Since(began).Seconds())
		return answers, err
	})
}

func effectResult(answers []events.Event, err error) string {
	if err != nil {
		return "retry"
	}
	for _, a := range answers {
		if a.Type() == events.TypeEffectRefused {
			return "refused"
		}
	}
	return "ok"
}
