package app

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// The results of an announcement.
const (
	announcedConfirmed   = "confirmed"
	announcedUnconfirmed = "unconfirmed"
	announcedUnsendable  = "unsendable"
	announcedGap         = "gap"
)

// announcements counts them. Every series starts at 0: Prometheus sees no increase in one that begins with 1.
func (m *metrics) announcements() *prometheus.CounterVec {
	c := m.counter("jobstream_announcements_total", "Announcements of public events by result: confirmed, unconfirmed (it is repeated), unsendable (given up), gap (never made: too many were due).", "type", "result")
	for _, p := range []events.Public{events.JobStarted{}, events.JobFinished{}, events.PodFinished{}, events.TickDecided{}} {
		for _, result := range []string{announcedConfirmed, announcedUnconfirmed, announcedUnsendable} {
			c.WithLabelValues(events.PublicType(p), result)
		}
	}
	c.WithLabelValues(events.PublicType(events.PodFinished{}), announcedGap)
	c.WithLabelValues(events.PublicType(events.TickDecided{}), announcedGap)
	return c
}

// drops counts ends of Pods that will never be announced: nothing else is dropped before the first attempt.
func (m *metrics) drops(_ string, count int) {
	m.announced.WithLabelValues(events.PublicType(events.PodFinished{}), announcedGap).Add(float64(count))
}

// announcing is an Announcer whose announcements are counted.
func (m *metrics) announcing(a engine.Announcer) engine.Announcer { return tallied{a, m.announced} }

type tallied struct {
	engine.Announcer
	announced *prometheus.CounterVec
}

// Announce implements engine.Announcer.
func (c tallied) Announce(ctx context.Context, p events.Public) error {
	err := c.Announcer.Announce(ctx, p)
	result := announcedConfirmed
	if err != nil {
		result = announcedUnconfirmed
		if events.Permanent(err) {
			result = announcedUnsendable
		}
	}
	c.announced.WithLabelValues(events.PublicType(p), result).Inc()
	return err
}

// backlog adds metrics of the stream of public events, as last observed. They are absent while the stream does not exist.
func (m *metrics) backlog(look func() (bus.Backlog, bool)) { m.registry.MustRegister(fill(look)) }

type fill func() (bus.Backlog, bool)

var (
	fillBytes    = prometheus.NewDesc("jobstream_events_stream_bytes", "Bytes that the stream of public events takes.", nil, nil)
	fillMaxBytes = prometheus.NewDesc("jobstream_events_stream_limit_bytes", "Bytes that it may take: then the oldest events go.", nil, nil)
	fillMaxAge   = prometheus.NewDesc("jobstream_events_stream_limit_seconds", "How long it keeps an event.", nil, nil)
	fillMessages = prometheus.NewDesc("jobstream_events_stream_messages", "Events that it holds.", nil, nil)
	fillFirst    = prometheus.NewDesc("jobstream_events_stream_first_sequence", "Sequence of the oldest event; it grows as the oldest go.", nil, nil)
	fillOldest   = prometheus.NewDesc("jobstream_events_stream_oldest_timestamp_seconds", "When the oldest event was stored; absent while there is none.", nil, nil)
)

// Describe implements prometheus.Collector.
func (fill) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{fillBytes, fillMaxBytes, fillMaxAge, fillMessages, fillFirst, fillOldest} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (f fill) Collect(to chan<- prometheus.Metric) {
	l, ok := f()
	if !ok {
		return
	}
	gauge := func(d *prometheus.Desc, v float64) { to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(fillBytes, float64(l.Bytes))
	gauge(fillMaxBytes, float64(l.MaxBytes))
	gauge(fillMaxAge, l.MaxAge.Seconds())
	gauge(fillMessages, float64(l.Messages))
	gauge(fillFirst, float64(l.First))
	if l.Messages > 0 {
		gauge(fillOldest, float64(l.Oldest.UnixMilli())/1000)
	}
}
