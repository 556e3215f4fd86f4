package app

import (
	"context"
	"log/slog"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// Tracing makes spans of what is announced: that of internal/trace, which a program hands in so that no other has to carry it.
type Tracing struct {
	// New makes an exporter for the cluster with that name, as the environment says; what it makes may do nothing. Its error says
	// which variable cannot work. settled hears what has become of how many spans.
	New func(cluster string, log *slog.Logger, settled func(result string, spans int)) (Spans, error)
	// Results is every result that settled may hear of.
	Results []string
}

// Spans is an exporter. Announced must return at once.
type Spans interface {
	Announced(events.Public)
	Close()
}

// start makes the exporter; one that does nothing where nobody has handed one in.
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

// traced is an Announcer that makes spans of what it has announced.
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
