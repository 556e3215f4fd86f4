package bus

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// taken is a foreign stream on the subjects of public events.
var taken = jetstream.StreamConfig{Name: "foreign", Subjects: []string{"jobstream.events.>"}}

// A stream of public events that cannot be written blocks nothing: facts are published, states are saved, and a program that
// starts then does start. When it can be written again, an announcement that is repeated is stored.
func TestUnwritableEventsStream(t *testing.T) {
	t.Parallel()
	const events = "jobstream_test_events"
	for name, c := range map[string]struct {
		spoil, heal func(*testing.T, jetstream.JetStream)
	}{
		"it is sealed, and deleted": {
			func(t *testing.T, js jetstream.JetStream) {
				change(t, js, events, func(c *jetstream.StreamConfig) { c.Sealed = true })
			},
			func(t *testing.T, js jetstream.JetStream) { remove(t, js, events) },
		},
		"it takes no more messages, and is put in order by a program that starts": {
			func(t *testing.T, js jetstream.JetStream) {
				change(t, js, events, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 1, jetstream.DiscardNew })
			},
			func(*testing.T, jetstream.JetStream) {},
		},
		"another stream has its subjects": {
			func(t *testing.T, js jetstream.JetStream) {
				until(t, "another stream has the subjects", func() bool { // the bus recreates its stream at once, if it can
					if err := js.DeleteStream(t.Context(), events); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
						t.Fatal(err)
					}
					_, err := js.CreateStream(t.Context(), taken)
					return err == nil
				})
			},
			func(t *testing.T, js jetstream.JetStream) { remove(t, js, taken.Name) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			b, js := connect(t, s), subscriber(t, s)
			announce(t, b, tick("shop", "nightly", 1))
			c.spoil(t, js)
			cannot(t, b, 2)
			works(t, b, 1)
			another := connect(t, s)
			works(t, another, 2)

			c.heal(t, js)
			for _, who := range []*Bus{b, another} {
				until(t, "it is announced", func() bool { return who.Announce(t.Context(), tick("shop", "nightly", 2)) == nil })
				until(t, "the bus is ready", func() bool { return who.Ready() == nil })
			}
			if got := read(t, js, "jobstream.events.test.*.schedule.tick.>"); len(got) == 0 || got[len(got)-1].Time().Minute() != 2 {
				t.Errorf("%d events: the one that was due is not the last", len(got))
			}
		})
	}
}

// A loss of facts is signalled also while the stream of public events cannot be created: the cluster has to be listed again.
func TestLossesAreSaidWithoutEventsStream(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, js := connect(t, s), subscriber(t, s)
	until(t, "another stream has the subjects", func() bool {
		_ = js.DeleteStream(t.Context(), "jobstream_test_events")
		_, err := js.CreateStream(t.Context(), taken)
		return err == nil
	})
	until(t, "the bus has noticed", func() bool { b.top.look(); return b.Ready() != nil })
	remove(t, js, "jobstream_test_facts")
	until(t, "a loss is signalled", func() bool { b.top.look(); return losses(b) > 0 })
	works(t, b, 1)
}

// The stream's fill level shows before it drops anything, and when it does. A subscriber that was away can tell, too.
func TestFullStreamIsSeen(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	s := serve(t)
	b, js := connect(t, s, func(c *Config) { c.MaxEventsBytes = limit }), subscriber(t, s)
	seen := func(what string, is func(Backlog) bool) (l Backlog) {
		t.Helper()
		until(t, what, func() (ok bool) {
			b.top.look()
			l, ok = b.Backlog()
			return ok && is(l)
		})
		return l
	}
	if l := seen("an empty stream", func(l Backlog) bool { return l.Messages == 0 }); l.MaxBytes != limit || l.MaxAge == 0 || l.Full() != 0 {
		t.Errorf("%+v", l)
	}
	announce(t, b, tick("shop", "nightly", 0))
	away, err := js.CreateConsumer(t.Context(), b.names.events(), jetstream.ConsumerConfig{Durable: "away", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	m, err := away.Next(jetstream.FetchMaxWait(soon))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.DoubleAck(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := seen("an event", func(l Backlog) bool { return l.Messages == 1 })
	if missed(t, js, away) {
		t.Error("nothing has gone, and the subscriber thinks so")
	}
	n := 1
	for ; ; n++ {
		announce(t, b, tick("shop", "nightly", n))
		if l := seen("one more", func(l Backlog) bool { return l.Messages == uint64(n)+1 }); l.Full() >= nearlyFull {
			break
		}
	}
	if l := seen("a stream that is nearly full", func(l Backlog) bool { return l.Full() >= nearlyFull }); l.First != first.First || l.Oldest.IsZero() {
		t.Errorf("it is said when events have gone: %+v", l)
	}
	for range n {
		n++
		announce(t, b, tick("shop", "nightly", n))
	}
	if l := seen("that events have gone", func(l Backlog) bool { return l.First > first.First+1 }); l.Bytes > limit || l.Full() < nearlyFull {
		t.Errorf("%+v", l)
	}
	if !missed(t, js, away) {
		t.Error("events have gone that it had not read, and the subscriber cannot tell")
	}
	if level := inspectBacklog(backlog(jetstream.StreamInfo{State: jetstream.StreamState{Bytes: limit - 1}, Config: jetstream.StreamConfig{MaxBytes: limit}})); level.Advice == "" {
		t.Errorf("the doctor does not mind: %+v", level)
	}
}

// missed is the query that docs/events.md advises a subscriber to make when it comes back.
func missed(t *testing.T, js jetstream.JetStream, c jetstream.Consumer) bool {
	t.Helper()
	have, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), have.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return have.AckFloor.Stream+1 < s.CachedInfo().State.FirstSeq
}

func change(t *testing.T, js jetstream.JetStream, stream string, how func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	how(&c)
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, js jetstream.JetStream, stream string) {
	t.Helper()
	if err := js.DeleteStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
}

// cannot announces an event, which must fail with an error that is not permanent.
func cannot(t *testing.T, b *Bus, n int) {
	t.Helper()
	err := b.Announce(t.Context(), tick("shop", "nightly", n))
	if unsendable := (unsendable{}); err == nil || errors.As(err, &unsendable) {
		t.Errorf("announced: %v; want an error that asks for a retry", err)
	}
}

// works publishes a fact and saves a new state.
func works(t *testing.T, b *Bus, n uint64) {
	t.Helper()
	key := keyOf("uid-" + string(rune('a'+n)))
	publish(t, b, observation(key, n))
	store, err := b.Store("job")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(t.Context(), key, []byte("remembered"), 0, false); err != nil {
		t.Fatal(err)
	}
}
