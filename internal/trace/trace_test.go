package trace_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/trace"
	"github.com/jobstream/jobstream/internal/trace/tracetest"
)

// TestTheSpansOfARun: they form one tree, with the ids of the events, the times of the cluster, and the failure's reason.
func TestTheSpansOfARun(t *testing.T) {
	r, settled := tracetest.Collect(t), &counts{}
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	e := newExporter(t, settled)
	run := end(func(*events.JobFinished) {})
	e.Announced(events.TickDecided{ScheduledJob: run.Owner.ScheduledJob, Verdict: events.Started, Nominal: at(0), Count: 1}) // no span yet: its Job has not ended
	e.Announced(events.JobStarted{Job: run.Job, Owner: run.Owner, Start: at(5)})
	e.Announced(run)
	arrive(t, r, 2)
	finally(t, "both to be counted as exported", func() bool { return settled.get(trace.Exported) == 2 })
	e.Close()

	spans := named(t, r)
	tick, job := spans["schedule.tick"], spans["job"]
	if len(spans) != 2 {
		t.Fatalf("spans: %v", spans)
	}
	if got, want := job.Traceparent, events.TraceOf(run).String(); got != want {
		t.Errorf("the Job is %s, JobFinish says %s", got, want)
	}
	if got, want := tick.Traceparent, events.TickTrace("schedule-1", at(0)).String(); got != want {
		t.Errorf("the tick is %s, its event says %s", got, want)
	}
	if job.Parent != tick.Traceparent[36:52] || job.Traceparent[:35] != tick.Traceparent[:35] || tick.Parent != "" {
		t.Errorf("no tree: %v, %v", tick, job)
	}
	lasts(t, tick, at(0), at(4))
	lasts(t, job, at(5), at(58))
	for what, tt := range map[string]struct{ got, want map[string]string }{
		"tick": {tick.Attributes, map[string]string{"k8s.namespace.name": "shop", "jobstream.scheduledjob.name": "nightly", "jobstream.scheduledjob.uid": "schedule-1",
			"jobstream.nominal_time": "2026-01-02T03:04:00Z", "jobstream.lateness_seconds": "4"}},
		"job": {job.Attributes, map[string]string{"k8s.namespace.name": "shop", "k8s.job.name": "nightly-x", "k8s.job.uid": "job-1", "jobstream.result": "Failed",
			"jobstream.reason": "BackoffLimitExceeded", "jobstream.succeeded": "2", "jobstream.failed": "7", "jobstream.completions": "3"}},
	} {
		if !maps.Equal(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", what, tt.got, tt.want)
		}
	}
	if !job.Failed || job.Message != "BackoffLimitExceeded: Job has reached the specified backoff limit" || tick.Failed {
		t.Errorf("status %v, %v", job, tick)
	}
	for key, want := range map[string]string{"service.name": "jobstream", "service.version": "v1.2.3", "k8s.cluster.name": "prod.eu", "deployment.environment": "test"} {
		if job.Resource[key] != want {
			t.Errorf("resource %s: %q, want %q", key, job.Resource[key], want)
		}
	}
	if n := settled.get(trace.Exported); n != 2 {
		t.Errorf("%d are counted as exported", n)
	}
}

// arrive waits until the collector has so many spans: Close gives them two seconds, which is little on a busy machine.
func arrive(t *testing.T, r *tracetest.Collector, n int) {
	t.Helper()
	finally(t, "the spans to arrive", func() bool { return len(r.Spans()) >= n })
}

func lasts(t *testing.T, s tracetest.Span, from, to time.Time) {
	t.Helper()
	if !s.Start.Equal(from) || !s.End.Equal(to) {
		t.Errorf("%s lasts from %v to %v, want %v to %v", s.Name, s.Start, s.End, from, to)
	}
}

// TestOtherJobs: Jobs without a nominal time, Jobs that are part of a larger trace, and Jobs whose clocks disagree.
func TestOtherJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		end          events.JobFinished
		spans        int
		parent       string // of the Job's span
		began, ended time.Time
	}{
		"a Job of its own":        {end(alone), 1, "", at(5), at(58)},
		"a run by hand":           {end(func(e *events.JobFinished) { e.Owner.Nominal = time.Time{} }), 1, "", at(5), at(58)},
		"one that continues":      {end(func(e *events.JobFinished) { e.ParentSpan = continued }), 1, continued[36:52], at(5), at(58)},
		"one not worth recording": {end(func(e *events.JobFinished) { e.ParentSpan = continued[:54] + "0" }), 0, "", at(5), at(58)},
		"one that never started":  {end(func(e *events.JobFinished) { alone(e); e.Start = time.Time{} }), 1, "", at(58), at(58)},
		"an end before the start": {end(func(e *events.JobFinished) { alone(e); e.Start = at(59) }), 1, "", at(59), at(59)},
	} {
		t.Run(name, func(t *testing.T) {
			r := tracetest.Collect(t)
			e := newExporter(t, &counts{})
			e.Announced(tt.end)
			arrive(t, r, tt.spans)
			e.Close()
			spans := named(t, r)
			if len(spans) != tt.spans {
				t.Fatalf("%d spans, want %d: %v", len(spans), tt.spans, spans)
			}
			if tt.spans == 0 {
				return
			}
			job := spans["job"]
			if got, want := job.Traceparent, events.TraceOf(tt.end).String(); got != want {
				t.Errorf("it is %s, JobFinish says %s", got, want)
			}
			if job.Parent != tt.parent {
				t.Errorf("its parent is %q, want %q", job.Parent, tt.parent)
			}
			lasts(t, job, tt.began, tt.ended)
			if job.Failed != (tt.end.Result == events.JobFailed) {
				t.Errorf("its status is %v", job.Failed)
			}
		})
	}
}

// TestJobsThatWereMadeEarly: the API server's clock is behind. The span does not end before it begins; the lateness attribute is
// not corrected.
func TestJobsThatWereMadeEarly(t *testing.T) {
	for lateness, created := range map[string]time.Time{"-3": at(0).Add(-3 * time.Second), "0": {}} {
		r := tracetest.Collect(t)
		e := newExporter(t, &counts{})
		e.Announced(end(func(e *events.JobFinished) { e.Created = created }))
		arrive(t, r, 2)
		e.Close()
		tick := named(t, r)["schedule.tick"]
		lasts(t, tick, at(0), at(0))
		if got := tick.Attributes["jobstream.lateness_seconds"]; got != lateness {
			t.Errorf("it is %s late, want %s", got, lateness)
		}
	}
}

// TestTwoReplicasExportTheSame: the collector gets the same spans from every reconciler, before and after any loss of state.
func TestTwoReplicasExportTheSame(t *testing.T) {
	r := tracetest.Collect(t)
	for n := range 2 {
		e := newExporter(t, &counts{})
		e.Announced(end(func(*events.JobFinished) {}))
		arrive(t, r, 2*(n+1))
		e.Close()
	}
	if spans := r.Spans(); len(spans) != 4 || !reflect.DeepEqual(spans[:2], spans[2:]) {
		t.Errorf("they differ: %v", spans)
	}
}

// TestCloseSendsWhatWaits: at the end of the program, no span waits for others. It is tried again, as Close gives up after two
// seconds, which may be too short on a busy machine.
func TestCloseSendsWhatWaits(t *testing.T) {
	r := tracetest.Collect(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	for range 5 {
		e := newExporter(t, &counts{})
		e.Announced(end(alone))
		e.Close()
		if len(r.Spans()) > 0 {
			return
		}
	}
	t.Error("no span has arrived")
}

// TestACollectorThatHangs: nothing waits for it; excess spans are dropped and counted, and the program ends.
func TestACollectorThatHangs(t *testing.T) {
	tracetest.ClearEnvironment(t)
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(hangs.Close)
	t.Cleanup(func() { close(release) })
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", hangs.URL)
	settled := &counts{}
	e := newExporter(t, settled)
	const many, room = 10000, 2048
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range many {
			e.Announced(end(alone))
		}
		e.Close()
	}()
	finally(t, "to announce, and to end", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	if n := settled.get(trace.Dropped); n > many-room || n < many-2*room { // on a busy machine, a batch may be given up meanwhile
		t.Errorf("%d are counted as dropped, want %d", n, many-room)
	}
	finally(t, "the others to be given up", func() bool { return settled.get(trace.Failed) > 0 })
	if n := settled.get(trace.Exported); n != 0 {
		t.Errorf("%d are counted as exported", n)
	}
}

// TestACollectorThatRefuses: rejected spans are dropped and counted, and make room.
func TestACollectorThatRefuses(t *testing.T) {
	tracetest.ClearEnvironment(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }))
	t.Cleanup(refuses.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", refuses.URL+"/v1/traces")
	settled := &counts{}
	e := newExporter(t, settled)
	const batch = 512
	for round := range 6 { // more, in all, than there is room for at once
		for range batch {
			e.Announced(end(alone))
		}
		finally(t, "a batch to be given up", func() bool { return settled.get(trace.Failed) == (round+1)*batch })
	}
	if n := settled.get(trace.Dropped); n != 0 {
		t.Errorf("%d were dropped", n)
	}
}

// TestNothingIsConfigured: there is no exporter, and the nil one may be used.
func TestNothingIsConfigured(t *testing.T) {
	for _, environment := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		tracetest.ClearEnvironment(t)
		for name, value := range environment {
			t.Setenv(name, value)
		}
		e, err := trace.New(trace.Config{})
		if e != nil || err != nil {
			t.Errorf("%v: %v, %v", environment, e, err)
		}
		e.Announced(end(alone))
		e.Close()
	}
}

// TestWhatCannotWork: the error names the variable, and has no password.
func TestWhatCannotWork(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "http://collector:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318", "OTEL_EXPORTER_OTLP_ENDPOINT cannot be read"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://me:secret@collector", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://", "write a URL"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "only http/protobuf is supported"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "only http/protobuf is supported"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "use otlp, or none"},
	} {
		tracetest.ClearEnvironment(t)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv(tt.name, tt.value)
		e, err := trace.New(trace.Config{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s=%s: %v", tt.name, tt.value, err)
		}
		e.Close()
	}
}
