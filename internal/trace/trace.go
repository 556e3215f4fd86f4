// Package trace exports Jobs as OpenTelemetry spans to the collector that the standard environment
// variables name. It is the only package that imports OpenTelemetry.
//
//	JobFinish, confirmed --Announced--> spans with the ids of events.Trace --> queue of 2,048 --OTLP/HTTP--> collector
//
// Spans are for people who look for a cause; nothing depends on them. So nothing waits for a collector: spans that it
// does not accept in time are dropped, and counted.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobstream/jobstream/events"
)

const (
	// queueLength is OpenTelemetry's default.
	queueLength = 2048
	// flushTimeout is how long a stopping program waits for its last spans: running turns may have taken 15 of its 20 seconds.
	flushTimeout = 2 * time.Second
	// scope is the instrumentation scope of the spans.
	scope = "github.com/jobstream/jobstream"
)

// The results of a span.
const (
	// Exported: the collector has it.
	Exported = "exported"
	// Failed: the collector did not accept it, even after retries.
	Failed = "failed"
	// Dropped: too many others waited for the collector.
	Dropped = "dropped"
)

// Results lists every result that Config.Settled may receive.
var Results = []string{Exported, Failed, Dropped}

// Config configures an Exporter beside the environment.
type Config struct {
	// Cluster is the name of the Kubernetes cluster, Version that of the program.
	Cluster, Version string
	// Log receives errors of the export; nil means slog.Default().
	Log *slog.Logger
	// Settled, if not nil, receives the result of that many spans. It must return at once.
	Settled func(result string, spans int)
}

// Exporter makes spans of public events and sends them. A nil Exporter does nothing.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	away     *otlptrace.Exporter
	log      *slog.Logger
}

// New returns an Exporter configured by the environment; nil if that names no collector. It does not connect yet. The error names
// the invalid variable.
func New(c Config) (*Exporter, error) {
	endpoint, err := collector()
	if endpoint == "" || err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Settled == nil {
		c.Settled = func(string, int) {}
	}
	ctx := context.Background() // of the objects created here; no request is sent
	r, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "jobstream"), attribute.String("service.version", c.Version),
		attribute.String("k8s.cluster.name", c.Cluster)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	e := &Exporter{away: otlptracehttp.NewUnstarted(), log: c.Log}
	if err := e.away.Start(ctx); err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_*: %w", err)
	}
	q := &queue{Config: c}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(sender{e.away, q}, sdk.WithMaxQueueSize(queueLength))
	e.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(q), sdk.WithIDGenerator(derived{}), sdk.WithResource(r))
	e.tracer = e.provider.Tracer(scope, trace.WithInstrumentationVersion(c.Version))
	c.Log.Info("spans are exported", "collector", endpoint)
	return e, nil
}

// Close sends waiting spans, if the collector accepts them within two seconds, and stops.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.log.Warn("the last spans are lost", "error", err)
	}
	// This ends retries to a collector that does not respond.
	_ = e.away.Shutdown(ctx)
}

// queue limits the spans that wait for the collector, and counts those dropped. The processor behind it has the same capacity.
type queue struct {
	sdk.SpanProcessor
	Config
	waiting atomic.Int64
}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) > queueLength {
		q.waiting.Add(-1)
		q.Settled(Dropped, 1)
		q.Log.Warn("spans are dropped: the collector takes them too slowly, or not at all", "waiting", queueLength)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// sender is an exporter that reports the result of spans. It logs its errors here, because the SDK would not use our log.
type sender struct {
	sdk.SpanExporter
	queue *queue
}

// ExportSpans implements sdk.SpanExporter.
func (s sender) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.queue.waiting.Add(-int64(len(spans)))
	result := Exported
	if err != nil {
		result = Failed
		s.queue.Log.Warn("spans could not be exported, and are given up", "spans", len(spans), "error", err)
	}
	s.queue.Settled(result, len(spans))
	return nil
}

// derived gives a span the ids from its context, which every program can compute.
type derived struct{}

type identity struct{}

func as(ctx context.Context, t events.Trace) context.Context {
	return context.WithValue(ctx, identity{}, t)
}

// NewIDs implements sdk.IDGenerator.
func (derived) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	t, _ := ctx.Value(identity{}).(events.Trace)
	return t.ID, t.Span
}

// NewSpanID implements sdk.IDGenerator.
func (derived) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	t, _ := ctx.Value(identity{}).(events.Trace)
	return t.Span
}
