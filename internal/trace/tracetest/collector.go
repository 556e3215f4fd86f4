// Package tracetest is a collector of OpenTelemetry spans for tests: it speaks OTLP over HTTP, as any other does.
package tracetest

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector records the spans that it receives.
type Collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []Span
}

// Span has the parts of a span that tests need.
type Span struct {
	Name string
	// Traceparent identifies the span for its children; Parent is the id of its parent, "" for none.
	Traceparent, Parent string
	Start, End          time.Time
	// Attributes are the span's, Resource those of its producer; numbers are in decimal.
	Attributes, Resource map[string]string
	// Failed reports whether its status is Error; Message is that of the status.
	Failed  bool
	Message string
}

// Collect starts a collector on loopback, and sets the environment to it, until the test ends. A request that is not OTLP fails
// the test.
func Collect(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := c.take(request); err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
	t.Cleanup(c.Close)
	ClearEnvironment(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // milliseconds, instead of five seconds
	return c
}

// ClearEnvironment removes the machine's own settings, until the test ends.
func ClearEnvironment(t testing.TB) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// Spans returns all received spans, in order.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

func (c *Collector) take(request *http.Request) error {
	if request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("the collector was sent %s to %s", request.Header.Get("Content-Type"), request.URL.Path)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil //nolint:nilerr // the sender was killed meanwhile
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &sent); err != nil {
		return fmt.Errorf("the collector was sent what is not OTLP: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range sent.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, read(s, of.Resource.GetAttributes()))
			}
		}
	}
	return nil
}

func read(s *wire.Span, resource []*common.KeyValue) Span {
	return Span{
		Name:        s.Name,
		Traceparent: fmt.Sprintf("00-%x-%x-%02x", s.TraceId, s.SpanId, s.Flags&0xff),
		Parent:      hex.EncodeToString(s.ParentSpanId),
		Start:       time.Unix(0, int64(s.StartTimeUnixNano)).UTC(), //nolint:gosec // nanoseconds fit until the year 2262
		End:         time.Unix(0, int64(s.EndTimeUnixNano)).UTC(),   //nolint:gosec // as above
		Attributes:  text(s.Attributes), Resource: text(resource),
		Failed:  s.Status.GetCode() == wire.Status_STATUS_CODE_ERROR,
		Message: s.Status.GetMessage(),
	}
}

func text(all []*common.KeyValue) map[string]string {
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
