package bus

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A full stream drops its oldest events; neither that nor a subscriber that never acknowledges blocks a program.
func TestFullStreamDropsTheOldest(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s, func(c *Config) { c.MaxEventsBytes = 64 << 10 })
	idle, err := subscriber(t, s).CreateConsumer(t.Context(), "jobstream_test_events", jetstream.ConsumerConfig{
		Durable: "idle", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	announce(t, b, tick("shop", "nightly", 0))
	if _, err := idle.Next(jetstream.FetchMaxWait(soon)); err != nil { // and never a word about it
		t.Fatal(err)
	}
	const most = 500
	for n := 1; n < most; n++ {
		announce(t, b, tick("shop", "nightly", n))
	}
	got := read(t, subscriber(t, s), "jobstream.events.test.>")
	if len(got) < 10 || len(got) >= most {
		t.Fatalf("%d of %d events in 64 KiB", len(got), most)
	}
	for i, e := range got {
		if want := tick("shop", "nightly", most-len(got)+i); !e.Time().Equal(want.Nominal) {
			t.Fatalf("event %d is of %v, want %v: the newest, in order", i, e.Time(), want.Nominal)
		}
	}
	t.Logf("%d events stay: %d bytes each", len(got), 64<<10/len(got))
}

// MaxEventsAge may be below the window of duplicates, and events are dropped at that age.
func TestEventsExpire(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), func(c *Config) { c.MaxEventsAge = time.Second })
	announce(t, b, tick("shop", "nightly", 1))
	until(t, "the event is gone", func() bool { return messages(t, b, b.names.events()) == 0 })
	before := stateOf(t, b, b.names.events()).LastSeq
	announce(t, b, tick("shop", "nightly", 1))
	if got := stateOf(t, b, b.names.events()).LastSeq; got != before+1 {
		t.Errorf("the stream ends at %d, want %d: it is not announced again", got, before+1)
	}
}

// Subscribers that never acknowledge slow no other client down: one is at its limit, another gets the same events over and over.
// Others receive everything at once, with as few deliveries as without them, and announcements, facts and states go on.
func TestSubscribersThatNeverAcknowledge(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b, js := connect(t, s), subscriber(t, s)
	durable := func(name string, c jetstream.ConsumerConfig) jetstream.Consumer {
		c.Durable, c.AckPolicy = name, jetstream.AckExplicitPolicy
		made, err := js.CreateConsumer(t.Context(), "jobstream_test_events", c)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	var again atomic.Int64
	for name, c := range map[string]jetstream.ConsumerConfig{"stuck": {MaxAckPending: 10}, "hasty": {AckWait: 10 * time.Millisecond, MaxAckPending: 10}} {
		listening, err := durable(name, c).Consume(func(m jetstream.Msg) { // and never a word about it
			if about, err := m.Metadata(); err == nil && about.NumDelivered > 1 {
				again.Add(1)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(listening.Stop)
	}
	const most = 1000
	var received, twice atomic.Int64
	good, err := durable("good", jetstream.ConsumerConfig{}).Consume(func(m jetstream.Msg) {
		if about, err := m.Metadata(); err == nil && about.NumDelivered > 1 {
			twice.Add(1)
		}
		if m.DoubleAck(t.Context()) == nil {
			received.Add(1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Stop()
	for n := range most {
		announce(t, b, tick("shop", "nightly", n))
		until(t, "the other subscriber receives each event before the next is announced", func() bool { return received.Load() == int64(n+1) })
	}
	works(t, b, 1)
	until(t, "the hasty one gets its events over and over", func() bool { return again.Load() > 10 })
	for name, want := range map[string]int{"stuck": 10, "hasty": 10, "good": 0} {
		c, err := js.Consumer(t.Context(), "jobstream_test_events", name)
		if err != nil {
			t.Fatal(err)
		}
		until(t, fmt.Sprintf("%s has %d events in hand", name, want), func() bool {
			have, err := c.Info(t.Context())
			return err == nil && have.NumAckPending == want && have.NumPending == uint64(most-10)*uint64(min(want, 1))
		})
	}
	t.Logf("%d events received at once, %d of them twice; the hasty one got %d again", received.Load(), twice.Load(), again.Load())
}
