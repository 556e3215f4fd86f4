package trace_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/jobstream/jobstream/internal/trace"
)

// receiver is a collector: what it has been sent over OTLP/HTTP.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*wire.Span
	resource []*common.KeyValue
}

// collect starts a collector on loopback, and makes the environment name it.
func collect(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := r.take(request); err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(r.Close)
	clearEnvironment(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	return r
}

func (r *receiver) take(request *http.Request) error {
	if request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s of %s", request.URL.Path, request.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range sent.ResourceSpans {
		r.resource = of.Resource.Attributes
		for _, s := range of.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
	return nil
}

// named are the spans by name; two of one name fail the test.
func (r *receiver) named(t *testing.T) map[string]*wire.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]*wire.Span{}
	for _, s := range r.spans {
		if out[s.Name] != nil {
			t.Errorf("two spans are called %s", s.Name)
		}
		out[s.Name] = s
	}
	return out
}

// clearEnvironment takes away what this machine may have configured.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// counts is what has become of spans.
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

// newExporter is one that the environment configures.
func newExporter(t *testing.T, c *counts) *trace.Exporter {
	t.Helper()
	e, err := trace.New(trace.Config{Cluster: "prod.eu", Version: "v1.2.3", Log: slog.New(slog.DiscardHandler), Settled: c.add})
	if err != nil || e == nil {
		t.Fatalf("%v, %v", e, err)
	}
	t.Cleanup(e.Close)
	return e
}

// ids are a span's as in a traceparent.
func ids(s *wire.Span) string {
	return "00-" + hex.EncodeToString(s.TraceId) + "-" + hex.EncodeToString(s.SpanId) + fmt.Sprintf("-%02x", s.Flags&0xff)
}

func attributes(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(v.IntValue)
		}
	}
	return out
}

// finally waits for something that takes as long as the machine is busy.
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
