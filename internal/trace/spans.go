package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobstream/jobstream/events"
)

// Announced makes the spans of an event that the bus has confirmed; it returns at once. The end of a Job has all data for the
// span of the Job and that of its nominal time. The same event again makes the same spans again.
func (e *Exporter) Announced(p events.Public) {
	if e == nil {
		return
	}
	if end, ok := p.(events.JobFinished); ok {
		e.job(e.parent(context.Background(), end), end)
	}
}

// parent returns the parent of the Job's span: the span of its nominal time, which is made here, or that of its annotation, which
// another program makes.
func (e *Exporter) parent(ctx context.Context, end events.JobFinished) context.Context {
	parent, ok := end.Parent()
	switch {
	case !ok:
		return ctx
	case end.ParentSpan == "":
		return e.tick(ctx, end, parent)
	}
	flags := trace.TraceFlags(0).WithSampled(parent.Sampled)
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: parent.ID, SpanID: parent.Span, TraceFlags: flags, Remote: true}))
}

// tick makes the span of a nominal time, until the creation of its Job. If the API server's clock is behind, that may be earlier.
func (e *Exporter) tick(ctx context.Context, end events.JobFinished, t events.Trace) context.Context {
	due, schedule := end.Owner.Nominal, end.Owner.ScheduledJob
	made := end.Created
	if made.IsZero() { // announced from the state of a version without this field
		made = due
	}
	ctx, span := e.tracer.Start(as(ctx, t), "schedule.tick", trace.WithTimestamp(due), trace.WithAttributes(
		attribute.String("k8s.namespace.name", schedule.Namespace),
		attribute.String("jobstream.scheduledjob.name", schedule.Name),
		attribute.String("jobstream.scheduledjob.uid", string(schedule.UID)),
		attribute.String("jobstream.nominal_time", due.UTC().Format(time.RFC3339)),
		attribute.Int64("jobstream.lateness_seconds", int64(made.Sub(due)/time.Second)),
	))
	span.End(trace.WithTimestamp(notBefore(made, due)))
	return ctx
}

// job makes the span of a Job, from the start of its last run. A Job that never started takes no time.
func (e *Exporter) job(ctx context.Context, end events.JobFinished) {
	began := end.Start
	if began.IsZero() {
		began = end.End
	}
	attributes := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", end.Job.Namespace),
		attribute.String("k8s.job.name", end.Job.Name),
		attribute.String("k8s.job.uid", string(end.Job.UID)),
		attribute.String("jobstream.result", string(end.Result)),
		attribute.String("jobstream.reason", end.Reason),
		attribute.Int("jobstream.succeeded", int(end.Succeeded)),
		attribute.Int("jobstream.failed", int(end.Failed)),
	}
	if end.Completions != nil {
		attributes = append(attributes, attribute.Int("jobstream.completions", int(*end.Completions)))
	}
	_, span := e.tracer.Start(as(ctx, events.TraceOf(end)), "job", trace.WithTimestamp(began), trace.WithAttributes(attributes...))
	if end.Result == events.JobFailed {
		span.SetStatus(codes.Error, end.Reason+": "+end.Message)
	}
	span.End(trace.WithTimestamp(notBefore(end.End, began)))
}

// notBefore prevents a span from ending before it begins, if the times come from two clocks.
func notBefore(end, began time.Time) time.Time {
	if end.Before(began) {
		return began
	}
	return end
}
