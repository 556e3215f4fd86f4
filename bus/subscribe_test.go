package bus

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// In binary mode a subscriber finds the attributes in headers and the data in the payload. An event is the same in both modes.
func TestAnnouncedInBinaryMode(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s, func(c *Config) { c.EventMode = cloudevent.Binary })
	want := tick("shop", "tax.report", 1, verdict(events.Missed), func(e *events.TickDecided) { e.Message = "100% über der Zeit" })
	announce(t, b, want)
	announce(t, connect(t, s), want) // structured
	if got := messages(t, b, "jobstream_test_events"); got != 1 {
		t.Errorf("%d messages, want 1: the other mode is no other event", got)
	}
	stream, err := subscriber(t, s).Stream(t.Context(), "jobstream_test_events")
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "jobstream.events.test.shop.schedule.tick.missed.tax=2Ereport")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"ce-specversion": "1.0", "ce-type": "dev.jobstream.schedule.tick.v1", "ce-subject": "tax.report", "ce-time": "2026-01-02T03:01:00Z",
		"ce-source": "/clusters/test/namespaces/shop/scheduledjobs/tax.report", "ce-partitionkey": "uid-of-tax.report",
		"ce-datacontenttype": "application/json", "Content-Type": "application/json",
	} {
		if got := m.Header.Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
	e, err := cloudevent.Decode(m.Header, m.Data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := events.FromCloudEvent(e); err != nil || got != events.Public(want) {
		t.Errorf("it reads %+v, %v, want %+v", got, err, want)
	}
	if _, err := Connect(t.Context(), Config{Cluster: "test", URL: s.URL(), EventMode: "batch"}); err == nil || !strings.Contains(err.Error(), "use structured or binary") {
		t.Errorf("batch: %v", err)
	}
}

// A durable consumer starts where its owner wants, also at a time, and resumes where it was when its owner comes back. The time
// is that at which an event was stored, whatever time the event is about.
func TestSubscribersStartWhereTheyLike(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	announce(t, b, tick("shop", "nightly", 30), tick("shop", "nightly", 20), tick("shop", "nightly", 10), tick("shop", "nightly", 0))
	js := subscriber(t, s)
	stream, err := js.Stream(t.Context(), "jobstream_test_events")
	if err != nil {
		t.Fatal(err)
	}
	first := stream.CachedInfo().State.FirstSeq
	third, err := stream.GetMsg(t.Context(), first+2)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		start jetstream.ConsumerConfig
		want  []int
	}{
		"beginning": {jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}, []int{30, 20, 10, 0}},
		"moment":    {jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &third.Time}, []int{10, 0}},
		"number":    {jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first + 1}, []int{20, 10, 0}},
		"now":       {jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy}, nil},
	} {
		tt.start.Durable, tt.start.AckPolicy, tt.start.FilterSubject = name, jetstream.AckExplicitPolicy, "jobstream.events.test.shop.schedule.tick.>"
		if _, err := js.CreateConsumer(t.Context(), "jobstream_test_events", tt.start); err != nil {
			t.Fatal(err)
		}
		for _, minute := range tt.want { // a client that disconnects after each event, and knows only the consumer's name
			c, err := subscriber(t, s).Consumer(t.Context(), "jobstream_test_events", name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := c.Next(jetstream.FetchMaxWait(soon))
			if err != nil {
				t.Fatalf("from the %s: no event of minute %d: %v", name, minute, err)
			}
			e, err := cloudevent.Decode(m.Headers(), m.Data())
			if err != nil || e.Time().Minute() != minute {
				t.Errorf("from the %s: %v, %v; want the event of minute %d", name, e, err, minute)
			}
			if err := m.DoubleAck(t.Context()); err != nil {
				t.Error(err)
			}
		}
		c, err := js.Consumer(t.Context(), "jobstream_test_events", name)
		if err != nil {
			t.Fatal(err)
		}
		if left := c.CachedInfo().NumPending; left != 0 {
			t.Errorf("from the %s: %d more events than wanted", name, left)
		}
	}
}
