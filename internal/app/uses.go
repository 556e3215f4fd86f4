package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobstream/jobstream/bus"
)

var (
	useBytes    = prometheus.NewDesc("jobstream_stream_bytes", "Bytes that a stream of the bus takes.", []string{"stream"}, nil)
	useMaxBytes = prometheus.NewDesc("jobstream_stream_limit_bytes", "Bytes that a stream of the bus may take: then its oldest messages go.", []string{"stream"}, nil)
)

// uses adds the sizes of the streams, as last observed.
func (m *metrics) uses(look func() []bus.Use) { m.registry.MustRegister(uses(look)) }

type uses func() []bus.Use

// Describe implements prometheus.Collector.
func (uses) Describe(to chan<- *prometheus.Desc) { to <- useBytes; to <- useMaxBytes }

// Collect implements prometheus.Collector.
func (u uses) Collect(to chan<- prometheus.Metric) {
	for _, s := range u() {
		to <- prometheus.MustNewConstMetric(useBytes, prometheus.GaugeValue, float64(s.Bytes), s.Stream)
		if s.MaxBytes > 0 {
			to <- prometheus.MustNewConstMetric(useMaxBytes, prometheus.GaugeValue, float64(s.MaxBytes), s.Stream)
		}
	}
}
