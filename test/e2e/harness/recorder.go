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

// Recorder is a subscriber to public events. It knows them again by source and id, as anybody should.
type Recorder struct {
	t      testing.TB
	system *System

	mu    sync.Mutex
	ticks map[[2]string]events.TickDecided
}

// Record listens from now on.
func (s *System) Record(t testing.TB) *Recorder {
	t.Helper()
	nc, err := nats.Connect(s.NATS.URL, nats.Name("recorder"), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r := &Recorder{t: t, system: s, ticks: map[[2]string]events.TickDecided{}}
	if _, err := nc.Subscribe("jobstream.events.>", func(m *nats.Msg) { r.add(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *Recorder) add(data []byte) {
	var e struct {
		Source, ID string
		Data       events.TickDecided
	}
	if err := json.Unmarshal(data, &e); err != nil {
		r.t.Errorf("an event that cannot be read: %v: %s", err, data)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]string{e.Source, e.ID}
	if old, twice := r.ticks[key]; twice && old.String() != e.Data.String() {
		r.t.Errorf("%v was announced before as %v", e.Data, old)
	}
	r.ticks[key] = e.Data
}

// Ticks are the verdicts so far: those that were heard, and those that the stream holds.
func (r *Recorder) Ticks(t testing.TB) map[[2]string]events.TickDecided {
	t.Helper()
	for _, m := range r.system.Tap(t).StoredIn(t, func(stream string) bool { return strings.HasSuffix(stream, "_events") }) {
		r.add(m.Data)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.ticks)
}
