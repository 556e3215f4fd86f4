package bus

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// soon is how long anything may take that should happen by itself. Tests never sleep: they poll until this deadline. It is long because
// the processors are shared: in CI these tests give way to chaos, and what takes a second alone has taken more than a minute there.
const soon = 5 * time.Minute

// serve starts an embedded server on a free port with its own folder.
func serve(t testing.TB) *embedded.Server {
	t.Helper()
	return serveIn(t, t.TempDir(), freePort(t))
}

// serveIn starts a server on a folder that may already hold streams.
func serveIn(t testing.TB, dir string, port int) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Config{StoreDir: dir, Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

// connect connects to the server as the cluster "test" unless the configuration says otherwise.
func connect(t testing.TB, s *embedded.Server, change ...func(*Config)) *Bus {
	t.Helper()
	c := Config{Cluster: "test", ConnectTimeout: soon, Log: slog.New(slog.NewTextHandler(testLog(t), nil))}
	if s != nil {
		c.URL = s.URL()
	}
	for _, f := range change {
		f(&c)
	}
	b, err := Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// patient is for tests that count deliveries: no message is redelivered because a consumer was slow.
func patient(c *Config) { c.AckWait = soon }

type logTo struct{ t testing.TB }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// testLog writes into the test's log if -v is given, otherwise nowhere: lines after the end of a test would panic.
func testLog(t testing.TB) interface{ Write([]byte) (int, error) } {
	if os.Getenv("BUS_LOG") == "" {
		return &bytes.Buffer{}
	}
	return logTo{t}
}

// until polls until the condition holds.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	within(t, soon, what, ok)
}

func within(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func keyOf(uid string) events.Key {
	return events.Key{Function: "job", Namespace: "default", UID: types.UID(uid)}
}

// observation is a fact about a Pod of the key at a version.
func observation(key events.Key, version uint64) events.Fact {
	return events.Fact{Cluster: "test", Key: key, Event: events.PodObserved{Pod: events.Pod{Name: "p", UID: "pod", Version: version}}}
}

// versionOf returns the version of an observation, 0 for other events.
func versionOf(e events.Event) uint64 {
	if p, ok := e.(events.PodObserved); ok {
		return p.Pod.Version
	}
	return 0
}

func publish(t testing.TB, b *Bus, facts ...events.Fact) {
	t.Helper()
	for _, f := range facts {
		if err := b.Publish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ear consumes and keeps its deliveries; answer decides the outcome of each, nil acknowledges.
type ear struct {
	mu       sync.Mutex
	received []engine.Delivery
	answer   func(engine.Delivery)
	stop     context.CancelFunc
	ended    chan error
}

func listen(t testing.TB, b *Bus, partitions []int, answer func(engine.Delivery)) *ear {
	t.Helper()
	if answer == nil {
		answer = func(d engine.Delivery) { d.Ack() }
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &ear{answer: answer, stop: stop, ended: make(chan error, 1)}
	go func() {
		e.ended <- b.Consume(ctx, "job", partitions, func(d engine.Delivery) {
			e.mu.Lock()
			e.received = append(e.received, d)
			e.mu.Unlock()
			e.answer(d)
		})
	}()
	t.Cleanup(func() { e.end(t) })
	return e
}

// end stops and waits.
func (e *ear) end(t testing.TB) {
	t.Helper()
	e.stop()
	select {
	case err := <-e.ended:
		e.ended <- err
	case <-time.After(soon):
		t.Error("Consume did not return")
	}
}

func (e *ear) all() []engine.Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]engine.Delivery(nil), e.received...)
}

func (e *ear) count(ok func(engine.Delivery) bool) int {
	n := 0
	for _, d := range e.all() {
		if ok == nil || ok(d) {
			n++
		}
	}
	return n
}

// versions returns the versions of the Pods delivered for the key, in order.
func (e *ear) versions(key events.Key) []uint64 {
	var all []uint64
	for _, d := range e.all() {
		if v := versionOf(d.Event()); v > 0 && d.Key() == key {
			all = append(all, v)
		}
	}
	return all
}

// stateOf returns the state that a stream reports.
func stateOf(t testing.TB, b *Bus, stream string) jetstream.StreamState {
	t.Helper()
	s, err := b.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State
}

// messages returns the number of messages in a stream.
func messages(t testing.TB, b *Bus, stream string) uint64 {
	t.Helper()
	return stateOf(t, b, stream).Msgs
}

func uid(n int) string { return fmt.Sprintf("0b5e7a10-0000-4000-8000-%012d", n) }

// allPartitions returns the numbers of all partitions.
func allPartitions() []int {
	partitions := make([]int, events.Partitions)
	for n := range partitions {
		partitions[n] = n
	}
	return partitions
}
