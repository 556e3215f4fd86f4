package bus

import (
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobstream/jobstream/bus/embedded"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

func portOf(t testing.TB, s *embedded.Server) int {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(p)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func losses(b *Bus) int {
	select {
	case <-b.Losses():
		return 1
	default:
		return 0
	}
}

// signalled waits for a signal from Losses.
func signalled(t testing.TB, b *Bus) {
	t.Helper()
	select {
	case <-b.Losses():
	case <-time.After(soon):
		t.Fatal("no loss was signalled")
	}
}

// The server and its disk disappear, and an empty one takes its place, while the bus publishes and consumes.
func TestServerReplacedByAnEmptyOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	trigger, reconciler := connect(t, s), connect(t, s)
	st := store(t, reconciler)
	key := keyOf(uid(1))
	old, err := st.Save(t.Context(), key, []byte("old"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	e := listen(t, reconciler, allPartitions(), nil)
	var version atomic.Uint64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // a trigger without pauses
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			v := version.Add(1)
			_ = trigger.Publish(t.Context(), observation(keyOf(uid(int(v%50))), v)) // Losses reports the outcome
		}
	}()
	until(t, "facts are received", func() bool { return e.count(nil) > 200 })
	if n := losses(trigger) + losses(reconciler); n != 0 {
		t.Fatal("a loss was signalled in quiet times")
	}

	s.Shutdown()
	until(t, "readiness ends", func() bool { return trigger.Ready() != nil && reconciler.Ready() != nil })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	serveIn(t, dir, port)
	signalled(t, trigger)
	signalled(t, reconciler)
	t.Logf("both buses knew of the loss %v after the new server started to start", time.Since(began))
	for _, stream := range []string{trigger.names.facts(), trigger.names.timers()} {
		if _, err := trigger.find(t.Context(), stream); err != nil {
			t.Errorf("a loss was signalled, and a list would be published in vain: stream %s: %v", stream, err)
		}
	}
	// The quarantine may come a look later: the loss does not wait for a stream that no fact needs.
	until(t, "both buses are ready", func() bool { return trigger.Ready() == nil && reconciler.Ready() == nil })
	after := version.Load()
	until(t, "newer facts are received", func() bool {
		return e.count(func(d engine.Delivery) bool { return versionOf(d.Event()) > after }) > 200
	})
	t.Logf("facts flowed again after %v", time.Since(began))
	close(stop)
	<-stopped
	data, rev, err := st.Load(t.Context(), key)
	if err != nil || data != nil || rev != 0 {
		t.Errorf("the memory of the old server: %q %d %v", data, rev, err)
	}
	fresh, err := st.Save(t.Context(), key, []byte("new"), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if fresh <= old {
		t.Errorf("revision %d of the new server does not lie above %d of the old: one could pass for the other", fresh, old)
	}
	if err := reconciler.Timers().Set(t.Context(), key, "x", time.Now()); err != nil {
		t.Error(err)
	}
	until(t, "a timer fires", func() bool {
		return e.count(func(d engine.Delivery) bool { return d.Event().Type() == events.TypeTimerFired }) > 0
	})
}

// An acknowledgement that arrives too late must not match a fact of the new stream.
func TestLateAcknowledgementHitsNothing(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), func(c *Config) { c.AckWait = 500 * time.Millisecond })
	key := keyOf(uid(1))
	e := listen(t, b, []int{key.Partition()}, func(engine.Delivery) {})
	publish(t, b, observation(key, 1))
	until(t, "the fact is received", func() bool { return e.count(nil) > 0 })
	late := e.all()[0]
	if err := b.js.DeleteStream(t.Context(), b.names.facts()); err != nil {
		t.Fatal(err)
	}
	signalled(t, b)
	publish(t, b, observation(key, 2))
	until(t, "the new fact is received", func() bool { return slices.Contains(e.versions(key), 2) })
	late.Ack()
	until(t, "the new fact is still owed", func() bool {
		n := 0
		for _, v := range e.versions(key) {
			if v == 2 {
				n++
			}
		}
		return n > 2
	})
}

func TestStreamsDeletedByHand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := connect(t, s), connect(t, s)
	st := store(t, b)
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), nil)
	for n, stream := range []string{a.names.facts(), a.names.timers(), a.names.state("job"), a.names.quarantine(), a.names.events()} {
		if _, err := st.Save(t.Context(), key, []byte("x"), 0, false); err != nil {
			t.Fatalf("%s: %v", stream, err)
		}
		publish(t, a, observation(key, uint64(n+1)))
		until(t, "a fact is received", func() bool { return slices.Contains(e.versions(key), uint64(n+1)) })
		before := e.count(isFired)
		if err := b.Timers().Set(t.Context(), key, "x", time.Now()); err != nil {
			t.Fatal(err)
		}
		until(t, "a timer fires", func() bool { return e.count(isFired) > before })
		if err := st.Forget(t.Context(), key); err != nil {
			t.Fatal(err)
		}

		began := time.Now()
		if err := a.js.DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
		switch stream {
		case a.names.quarantine(), a.names.events(): // losing those loses no fact
			until(t, "it stands again", func() bool { _, err := a.js.Stream(t.Context(), stream); return err == nil })
		case a.names.state("job"): // the trigger has no store
			signalled(t, b)
		default:
			signalled(t, b)
			signalled(t, a)
		}
		if losses(a)+losses(b) != 0 {
			t.Errorf("a loss was signalled twice, or for nothing, after %s was deleted", stream)
		}
		t.Logf("%s stood again after %v", stream, time.Since(began))
		until(t, "the bus is ready", func() bool { return a.Ready() == nil && b.Ready() == nil })
	}
	publish(t, a, observation(key, 99))
	until(t, "facts flow", func() bool { return slices.Contains(e.versions(key), 99) })
}

func isFired(d engine.Delivery) bool { return d.Event().Type() == events.TypeTimerFired }

func TestConsumersDeletedByHand(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), nil)
	publish(t, b, observation(key, 1))
	until(t, "a fact is received", func() bool { return slices.Contains(e.versions(key), 1) })
	for v := uint64(2); v < 5; v++ {
		if err := b.js.DeleteConsumer(t.Context(), b.names.facts(), factsConsumer("job", key.Partition())); err != nil {
			t.Fatal(err)
		}
		publish(t, b, observation(key, v))
		until(t, "the next fact is received", func() bool { return slices.Contains(e.versions(key), v) })
	}
	if err := b.js.DeleteConsumer(t.Context(), b.names.timers(), firedConsumer("job", key.Partition())); err != nil {
		t.Fatal(err)
	}
	if err := b.Timers().Set(t.Context(), key, "x", time.Now()); err != nil {
		t.Fatal(err)
	}
	until(t, "a timer fires", func() bool { return e.count(isFired) > 0 })
	if losses(b) != 0 {
		t.Error("a deleted consumer is no loss: the facts are still there")
	}
}

// Many programs start at once on an empty server: one creates each stream, and all agree on it.
func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var all sync.WaitGroup
	starters := make([]*Bus, 8)
	for n := range starters {
		all.Go(func() {
			b, err := Connect(t.Context(), Config{URL: s.URL(), Cluster: "test", ConnectTimeout: soon, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(b.Close)
			if _, err := b.Store("job"); err != nil {
				t.Error(err)
			}
			starters[n] = b
		})
	}
	all.Wait()
	for _, b := range starters {
		if b == nil {
			t.FailNow()
		}
		looks(t, b, 1)
		if losses(b) != 0 {
			t.Error("a start among many is taken for a loss")
		}
	}
}

// Settings that a user changed in ways that break the bus are restored at the start; others stay.
func TestSettingsAreBroughtInLine(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	info, err := b.js.Stream(t.Context(), b.names.facts())
	if err != nil {
		t.Fatal(err)
	}
	c := info.CachedInfo().Config
	c.SubjectTransform, c.MaxBytes, c.Description = nil, 1<<20, "the user's own words"
	if _, err := b.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	again := connect(t, s)
	if info, err = again.js.Stream(t.Context(), b.names.facts()); err != nil {
		t.Fatal(err)
	}
	got := info.CachedInfo().Config
	if _, differs := merge(got, again.factsStream()); differs {
		t.Errorf("settings: %+v", got)
	}
	if got.Description != c.Description || got.FirstSeq != c.FirstSeq {
		t.Errorf("settings that jobstream does not own were changed: %+v", got)
	}
	third := connect(t, s)
	if err := third.Ready(); err != nil {
		t.Error(err)
	}
}
