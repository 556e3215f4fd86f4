package bus

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
)

// tick is the verdict Started about minute n of a ScheduledJob; each name is an object of its own.
func tick(namespace, name string, n int, change ...func(*events.TickDecided)) events.TickDecided {
	e := events.TickDecided{
		ScheduledJob: events.Reference{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)},
		Verdict:      events.Started, Count: 1, Nominal: time.Date(2026, 1, 2, 3, n, 0, 0, time.UTC),
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func verdict(v events.Verdict) func(*events.TickDecided) {
	return func(e *events.TickDecided) { e.Verdict = v }
}

func announce(t testing.TB, b *Bus, all ...events.Public) {
	t.Helper()
	for _, p := range all {
		if err := b.Announce(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// subscriber is a NATS client that knows docs/events.md and nothing else of jobstream.
func subscriber(t testing.TB, s *embedded.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(s.URL(), nats.Timeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// read returns what the subscriber receives now for the filter.
func read(t testing.TB, js jetstream.JetStream, filter string) []event.Event {
	t.Helper()
	c, err := js.CreateConsumer(t.Context(), "jobstream_test_events", jetstream.ConsumerConfig{
		FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy, InactiveThreshold: soon,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Event
	for left := c.CachedInfo().NumPending; left > 0; left-- {
		m, err := c.Next(jetstream.FetchMaxWait(soon))
		if err != nil {
			t.Fatal(err)
		}
		var e event.Event
		if err := e.UnmarshalJSON(m.Data()); err != nil {
			t.Fatalf("%s: %v", m.Data(), err)
		}
		if err := e.Validate(); err != nil {
			t.Errorf("%s is no CloudEvent: %v", m.Data(), err)
		}
		if got := m.Headers().Get("Content-Type"); got != "application/cloudevents+json" {
			t.Errorf("content type %q", got)
		}
		all = append(all, e)
		if err := m.Ack(); err != nil {
			t.Error(err)
		}
	}
	return all
}

// The filters of docs/events.md select what it promises.
func TestSubscribersChooseBySubject(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	announce(t, b,
		tick("shop", "nightly", 1),
		tick("shop", "nightly", 2, verdict(events.Missed)),
		tick("shop", "tax.report.v2", 3, verdict(events.Skipped)),
		tick("lab", "nightly", 4, verdict(events.Blocked)),
		tick("lab", "started", 5, verdict(events.NotCreated)), // a name that reads like a verdict
	)
	js := subscriber(t, s)
	for filter, want := range map[string][]int{
		"jobstream.events.test.>":                                      {1, 2, 3, 4, 5},
		"jobstream.events.test.*.schedule.tick.>":                      {1, 2, 3, 4, 5},
		"jobstream.events.test.shop.>":                                 {1, 2, 3},
		"jobstream.events.test.*.schedule.tick.started.*":              {1},
		"jobstream.events.test.*.schedule.tick.missed.*":               {2},
		"jobstream.events.test.*.schedule.tick.skipped.*":              {3},
		"jobstream.events.test.*.schedule.tick.blocked.*":              {4},
		"jobstream.events.test.*.schedule.tick.failed.*":               {5},
		"jobstream.events.test.shop.schedule.tick.*.nightly":           {1, 2},
		"jobstream.events.test.shop.schedule.tick.*.tax=2Ereport=2Ev2": {3},
		"jobstream.events.test.*.job.>":                                nil,
	} {
		var got []int
		for _, e := range read(t, js, filter) {
			var data events.TickDecided
			if err := e.DataAs(&data); err != nil {
				t.Error(err)
			}
			got = append(got, data.Nominal.Minute())
			if e.Subject() != data.ScheduledJob.Name || e.Type() != "dev.jobstream.schedule.tick.v1" {
				t.Errorf("subject %q, type %q", e.Subject(), e.Type())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
}

// An event that is announced twice is stored once: by source and id, from any process and in any words, at once or after a
// restart of the server.
func TestAnnouncedTwiceIsStoredOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	a, b := connect(t, s), connect(t, s)
	first := tick("shop", "nightly", 1)
	again := tick("shop", "nightly", 1, verdict(events.Missed), func(e *events.TickDecided) { e.Message = "in other words" })
	var both sync.WaitGroup
	for _, who := range []*Bus{a, b} {
		both.Go(func() {
			for range 20 {
				until(t, "it is announced", func() bool { return who.Announce(t.Context(), first) == nil })
			}
		})
	}
	both.Wait()
	announce(t, a, again)
	count := func(want uint64, why string) {
		t.Helper()
		if got := messages(t, a, "jobstream_test_events"); got != want {
			t.Errorf("%d messages, want %d: %s", got, want, why)
		}
	}
	count(1, "one tick")
	announce(t, b, tick("shop", "nightly", 2))
	count(2, "another tick")
	announce(t, b, tick("lab", "nightly", 1))
	count(3, "another source with the same id")
	announce(t, b, tick("shop", "nightly", 1, func(e *events.TickDecided) { e.Until, e.Count = e.Nominal.Add(time.Minute), 2 }))
	count(4, "a range that begins there")
	s.Shutdown()
	serveIn(t, dir, port)
	until(t, "it is announced again", func() bool { return a.Announce(t.Context(), first) == nil })
	count(4, "the first tick after a restart")
}

// A user deletes the stream: the bus recreates it, and an announcement that failed in between succeeds when repeated.
func TestAnnouncedWhileTheStreamIsDeleted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	announce(t, b, tick("shop", "nightly", 1))
	for n := 2; n < 5; n++ {
		if err := b.js.DeleteStream(t.Context(), b.names.events()); err != nil {
			t.Fatal(err)
		}
		began, tries := time.Now(), 0
		until(t, "it is announced", func() bool {
			tries++
			err := b.Announce(t.Context(), tick("shop", "nightly", n))
			if unsendable := (unsendable{}); errors.As(err, &unsendable) {
				t.Fatalf("not to be repeated: %v", err)
			}
			return err == nil
		})
		t.Logf("announced %v after the stream was deleted, at try %d", time.Since(began), tries)
	}
	if got := read(t, subscriber(t, s), "jobstream.events.test.>"); len(got) != 1 {
		t.Errorf("%d events, want the last one", len(got))
	}
	until(t, "the bus is ready", func() bool { return b.Ready() == nil })
	if losses(b) != 0 {
		t.Error("a loss was signalled: a list of the cluster brings back no event")
	}
}

// Errors report whether a retry makes sense.
func TestAnnouncementsThatFail(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	for name, e := range map[string]events.TickDecided{
		"max_payload":      tick("shop", "nightly", 1, func(e *events.TickDecided) { e.Message = strings.Repeat("x", 9<<20) }),
		"misses a part":    tick("", "nightly", 1),
		"must be complete": tick("shop", "nightly", 1, verdict("")),
		"source":           tick("shop", "100%", 1), // which is no URI then
	} {
		var permanent interface{ Permanent() bool }
		err := b.Announce(t.Context(), e)
		if err == nil || !errors.As(err, &permanent) || !permanent.Permanent() || !strings.Contains(err.Error(), name) {
			t.Errorf("%.300v; want one that says %q, and that it is permanent", err, name)
		}
	}
	s.Shutdown()
	began := time.Now()
	err := b.Announce(t.Context(), tick("shop", "nightly", 1))
	if unsendable := (unsendable{}); err == nil || errors.As(err, &unsendable) {
		t.Errorf("without a server: %v", err)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("without a server: an error after %v", took)
	}
}
