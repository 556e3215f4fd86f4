package trace_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/trace"
	"github.com/jobstream/jobstream/internal/trace/tracetest"
)

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

const continued = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// end returns the failure of a ScheduledJob's Job, modified by change.
func end(change func(*events.JobFinished)) events.JobFinished {
	e := events.JobFinished{Job: events.Reference{Namespace: "shop", Name: "nightly-x", UID: "job-1"}, Result: events.JobFailed, Reason: "BackoffLimitExceeded",
		Message: "Job has reached the specified backoff limit", Succeeded: 2, Failed: 7, Completions: new(int32(3)), Created: at(4), Start: at(5), End: at(58),
		Owner: &events.RunOwner{ScheduledJob: events.Reference{Namespace: "shop", Name: "nightly", UID: "schedule-1"}, Nominal: at(0)}}
	change(&e)
	return e
}

// named returns the spans by name; two with one name fail the test.
func named(t *testing.T, c *tracetest.Collector) map[string]tracetest.Span {
	t.Helper()
	out := map[string]tracetest.Span{}
	for _, s := range c.Spans() {
		if _, twice := out[s.Name]; twice {
			t.Errorf("two spans are called %s", s.Name)
		}
		out[s.Name] = s
	}
	return out
}

// counts is the number of spans by result.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) add(result string, spans int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[result] += spans
}

func (c *counts) get(result string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[result]
}

// newExporter returns an exporter configured by the environment.
func newExporter(t *testing.T, c *counts) *trace.Exporter {
	t.Helper()
	e, err := trace.New(trace.Config{Cluster: "prod.eu", Version: "v1.2.3", Log: slog.New(slog.DiscardHandler), Settled: c.add})
	if err != nil || e == nil {
		t.Fatalf("%v, %v", e, err)
	}
	t.Cleanup(e.Close)
	return e
}

// finally waits for a condition, for as long as a busy machine may need.
func finally(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(time.Minute)
	defer tick.Stop()
	defer late.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

func alone(e *events.JobFinished) {
	e.Owner, e.Result, e.Reason, e.Message = nil, events.JobSucceeded, "CompletionsReached", "m"
}
