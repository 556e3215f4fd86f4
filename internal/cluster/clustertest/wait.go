package clustertest

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
)

// Timeout is generous enough for two cores that also compile, and well above the longest pause between two tries of a watch (30 s).
const Timeout = 5 * time.Minute

// Eventually polls until ok returns "", and otherwise what it still waits for.
func Eventually(t testing.TB, ok func() (waitsFor string)) {
	t.Helper()
	deadline := time.Now().Add(Timeout)
	for {
		what := ok()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still waiting after %v: %s", Timeout, what)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// Only asserts that there is one fact, and that it is of that type.
func Only[E events.Event](t testing.TB, facts []events.Event) E {
	t.Helper()
	if len(facts) == 1 {
		if e, ok := facts[0].(E); ok {
			return e
		}
	}
	var want E
	t.Fatalf("got the facts %#v, want one %T", facts, want)
	return want
}

// Buffer holds a log that another goroutine reads.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns all that was written since the last Reset.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Reset drops what was written.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.Reset()
}
