package app

import (
	"context"
	"log/slog"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// Tracing is the exporter of spans, internal/trace, passed in by a program so that other programs do not link it.
type Tracing struct {
	// New creates an exporter for the cluster with that name, configured by the environment; it may export nothing. The error names
	// the invalid variable. settled receives the result of that many spans.
	New func(cluster string, log *slog.Logger, settled func(result string, spans int)) (Spans, error)
	// Results lists every result that settled may receive.
	Results []string
}

// Spans is an exporter. Announced must return at once.
type Spans interface {
	Announced(events.Public)
	Close()
}

// start creates the exporter, or one that does nothing.
func (t Tracing) start(c ReconcilerConfig, m *metrics) (Spans, error) {
	if t.New == nil {
		return untraced{}, nil
	}
	for _, result := range t.Results {
		m.spans.WithLabelValues(result)
	}
	return t.New(c.Bus.Cluster, c.Log, func(result string, spans int) { m.spans.WithLabelValues(result).Add(float64(spans)) })
}

type untraced struct{}

func (untraced) Announced(events.Public) {}
func (untraced) Close()                  {}

// traced is an Announcer that exports what it has announced.
type traced struct {
	engine.Announcer
	spans Spans
}

// Announce implements engine.Announcer.
func (t traced) Announce(ctx context.Context, p events.Public) error {
	err := t.Announcer.Announce(ctx, p)
	if err == nil {
		t.spans.Announced(p)
	}
	return err
}
