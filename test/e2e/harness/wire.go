package harness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Message travelled over the bus or is in a stream.
type Message struct {
	// Where is the name of a stream, or "wire".
	Where, Subject string
	Header         nats.Header
	Data           []byte
}

// Bytes returns all of it that can carry information.
func (m Message) Bytes() []byte {
	return append(fmt.Appendf(nil, "%s\n%v\n", m.Subject, m.Header), m.Data...)
}

// Wire is a tap on the bus.
type Wire struct {
	js jetstream.JetStream

	mu   sync.Mutex
	seen []Message
}

// Tap connects to the bus and records every message from now on, also those that no stream stores.
func (s *System) Tap(t testing.TB) *Wire {
	t.Helper()
	nc, err := nats.Connect(s.NATS.URL, nats.Name("tap"), nats.Timeout(readyTimeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	w := &Wire{}
	if w.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute)); err != nil {
		t.Fatal(err)
	}
	sub, err := nc.Subscribe(">", func(m *nats.Msg) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, Message{Where: "wire", Subject: m.Subject, Header: m.Header, Data: m.Data})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

// Seen returns the messages that have travelled so far.
func (w *Wire) Seen() []Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[:len(w.seen):len(w.seen)]
}

// Publish puts a message into a stream.
func (w *Wire) Publish(t testing.TB, subject string, data []byte) {
	t.Helper()
	if _, err := w.js.Publish(t.Context(), subject, data); err != nil {
		t.Fatal(err)
	}
}

// Stored reads every message of every stream.
func (w *Wire) Stored(t testing.TB) []Message {
	t.Helper()
	return w.StoredIn(t, func(string) bool { return true })
}

// StoredIn reads every message of the streams whose names are wanted.
func (w *Wire) StoredIn(t testing.TB, wanted func(stream string) bool) (all []Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	streams := w.js.ListStreams(ctx)
	for info := range streams.Info() {
		if !wanted(info.Config.Name) {
			continue
		}
		s, err := w.js.Stream(ctx, info.Config.Name)
		if err != nil {
			t.Fatal(err)
		}
		state := s.CachedInfo().State
		if state.Msgs == 0 {
			continue
		}
		c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
		if err != nil {
			t.Fatal(err)
		}
		for {
			m, err := c.Next(jetstream.FetchMaxWait(time.Minute))
			if err != nil {
				t.Fatalf("read stream %s: %v", info.Config.Name, err)
			}
			all = append(all, Message{Where: info.Config.Name, Subject: m.Subject(), Header: m.Headers(), Data: m.Data()})
			meta, err := m.Metadata()
			if err != nil {
				t.Fatal(err)
			}
			if meta.NumPending == 0 || meta.Sequence.Stream >= state.LastSeq {
				break
			}
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
