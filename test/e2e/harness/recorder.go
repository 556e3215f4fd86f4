package harness

import (
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/events"
)

// Recorder is a subscriber to public events. It identifies them by source and id, as every subscriber should.
type Recorder struct {
	t      testing.TB
	system *System

	mu       sync.Mutex
	received map[[2]string]events.Public
}

// Record records from now on.
func (s *System) Record(t testing.TB) *Recorder {
	t.Helper()
	nc, err := nats.Connect(s.NATS.URL, nats.Name("recorder"), nats.Timeout(readyTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r := &Recorder{t: t, system: s, received: map[[2]string]events.Public{}}
	if _, err := nc.Subscribe("jobstream.events.>", func(m *nats.Msg) { r.add(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Recorder) add(data []byte) {
	e, key, err := read(data)
	if err != nil {
		r.t.Errorf("an event that cannot be decoded: %v: %s", err, data)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, twice := r.received[key]; twice && old.String() != e.String() {
		r.t.Errorf("%v was announced before as %v", e, old)
	}
	r.received[key] = e
}

// read decodes the event of a message, and returns its source and id.
func read(data []byte) (e events.Public, key [2]string, err error) {
	var head struct{ Source, ID string }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, key, err
	}
	e, err = events.DecodePublic(data)
	return e, [2]string{head.Source, head.ID}, err
}

// Received returns the events so far: those received, and those in the stream.
func (r *Recorder) Received(t testing.TB) map[[2]string]events.Public {
	t.Helper()
	for _, m := range r.system.Tap(t).StoredIn(t, func(stream string) bool { return strings.HasSuffix(stream, "_events") }) {
		r.add(m.Data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.received)
}

// Ticks returns the verdicts among them.
func (r *Recorder) Ticks(t testing.TB) map[[2]string]events.TickDecided {
	t.Helper()
	out := map[[2]string]events.TickDecided{}
	for key, e := range r.Received(t) {
		if tick, ok := e.(events.TickDecided); ok {
			out[key] = tick
		}
	}
	return out
}
