// Package trace exports what has become of Jobs as OpenTelemetry spans, to a collector that the standard environment
// variables name. It is the only one that knows OpenTelemetry.
//
//	JobFinish, confirmed --Announced--> spans with the ids of events.Trace --> queue of 2,048 --OTLP/HTTP--> collector
//
// Spans are for people who look for the cause of something; nothing depends on them. So nobody waits for a collector: what it
// does not take in time is dropped, and counted.
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
	// flushTimeout is how long a program that ends waits for its last spans: turns in hand may have taken 15 of the 20
	// seconds that it has.
	flushTimeout = 2 * time.Second
	// scope is who made the spans.
	scope = "github.com/jobstream/jobstream"
)

// What may become of a span.
const (
	// Exported says that the collector has it.
	Exported = "exported"
	// Failed says that the collector did not take it, also when it was repeated.
	Failed = "failed"
	// Dropped says that too many others waited for the collector.
	Dropped = "dropped"
)

// Results is every result that Config.Settled may hear of.
var Results = []string{Exported, Failed, Dropped}

// Config is what an Exporter needs to know beside the environment.
type Config struct {
	// Cluster is the name of the Kubernetes cluster, Version that of the program.
	Cluster, Version string
	// Log hears of what could not be exported; nil means slog.Default().
	Log *slog.Logger
	// Settled, if not nil, hears what has become of how many spans. It must return at once.
	Settled func(result string, spans int)
}

// Exporter makes spans of public events and sends them away. A nil one does nothing.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	away     *otlptrace.Exporter
	log      *slog.Logger
}

// New makes an Exporter as the environment says; nil where it names no collector. Nothing is connected yet. Its error says
// which variable cannot work.
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
	ctx := context.Background() // of what is made here; nothing is asked of anybody
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

// Close sends what waits, if the collector takes it within two seconds, and stops.
func (e *Exporter) Close() {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.log.Warn("the last spans are lost", "error", err)
	}
	// What is still being repeated to a collector that does not answer ends here.
	_ = e.away.Shutdown(ctx)
}

// queue bounds what waits for the collector, and counts what does not get in. The processor behind it has as much room.
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

// sender is an exporter that tells what became of spans. It keeps its errors: nobody else would say them in our log.
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

// derived gives a span the ids that it is known by to everybody, wherever they read of it.
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
