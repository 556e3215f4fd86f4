package bus

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/internal/finding"
)

// wanting is a program with its own settings for the streams of facts and events, and its log.
func wanting(t *testing.T, s *embedded.Server, factsBytes int64, eventsAge time.Duration) (*Bus, *journal) {
	t.Helper()
	log := &journal{}
	return connect(t, s, func(c *Config) {
		c.MaxFactsBytes, c.MaxEventsAge, c.Log = factsBytes, eventsAge, slog.New(slog.NewTextHandler(log, nil))
	}), log
}

// looks lets the bus look at its streams n more times, as it does every five seconds.
func looks(t *testing.T, b *Bus, n int) {
	t.Helper()
	for range n {
		var err error
		for deadline := time.Now().Add(soon); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
			if err = b.top.mend(t.Context()); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// factsBytes returns the byte limit of the stream of facts.
func factsBytes(t *testing.T, b *Bus) int64 {
	t.Helper()
	s, err := b.js.Stream(t.Context(), b.names.facts())
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config.MaxBytes
}

// A program that starts decides the settings, so that a rolling restart changes them. A running program with another value
// reports both, and writes nothing back.
func TestDifferentSettingsAreReportedAndNotReverted(t *testing.T) {
	t.Parallel()
	s := serve(t)
	old, log := wanting(t, s, 1<<20, time.Hour)
	if err := old.Ready(); err != nil {
		t.Fatal(err)
	}
	new, newLog := wanting(t, s, 2<<20, time.Hour)
	if n := newLog.count("max_bytes is 1048576, not 2097152"); n != 1 {
		t.Errorf("who changes a setting says it %d times", n)
	}
	for range 3 {
		looks(t, old, 3)
		looks(t, new, 3)
	}
	err := old.Ready()
	for _, want := range []string{old.names.facts(), "max_bytes is 2097152, not 1048576", "--nats-facts-bytes", "the last that starts decides"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readiness says %v, and not %q", err, want)
		}
	}
	if n := log.count("max_bytes is 2097152, not 1048576"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	if err := new.Ready(); err != nil {
		t.Errorf("who started last: %v", err)
	}
	if n := factsBytes(t, new); n != 2<<20 {
		t.Errorf("the stream may hold %d bytes: a program has written back what the last one wanted", n)
	}
	publish(t, old, observation(keyOf(uid(1)), 1)) // it still works
	finds(t, inspect(t, s.URL(), func(c *Config) { c.MaxFactsBytes, c.MaxEventsAge = 1<<20, time.Hour }),
		about("stream jobstream_test_facts", finding.Warn, "max_bytes is 2097152, not 1048576", "--nats-facts-bytes"))

	old.Close()
	again, _ := wanting(t, s, 2<<20, time.Hour) // the rolling restart goes on
	looks(t, again, 1)
	looks(t, new, 1)
	if err := again.Ready(); err != nil {
		t.Error(err)
	}
	if err := new.Ready(); err != nil {
		t.Error(err)
	}
	back, _ := wanting(t, s, 2<<20, 2*time.Hour)
	looks(t, new, 1)
	if err := new.Ready(); err == nil || !strings.Contains(err.Error(), "max_age is 2h0m0s, not 1h0m0s") || !strings.Contains(err.Error(), "--nats-events-age") {
		t.Errorf("readiness says %v", err)
	}
	back.Close()
	_, _ = wanting(t, s, 2<<20, time.Hour)
	looks(t, new, 1)
	if err := new.Ready(); err != nil {
		t.Errorf("after the setting was brought back: %v", err)
	}
}

// A lost stream is recreated once, by either of two programs with different settings, and they do not fight over it.
func TestALostStreamIsRemadeWithTheSettingsOfOne(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, aLog := wanting(t, s, 1<<20, time.Hour)
	b, bLog := wanting(t, s, 2<<20, time.Hour)
	before := aLog.count("brought in line") + bLog.count("brought in line")
	if err := b.js.DeleteStream(t.Context(), b.names.facts()); err != nil {
		t.Fatal(err)
	}
	signalled(t, a)
	signalled(t, b)
	for range 3 {
		looks(t, a, 1)
		looks(t, b, 1)
	}
	if n := aLog.count("brought in line") + bLog.count("brought in line") - before; n != 0 {
		t.Errorf("the settings were changed %d times", n)
	}
	if (a.Ready() == nil) == (b.Ready() == nil) {
		t.Errorf("one of them has what it wants: %v; %v", a.Ready(), b.Ready())
	}
}
