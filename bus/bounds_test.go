package bus

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/finding"
)

// useOf returns the bus's report about how full a stream is.
func useOf(t *testing.T, b *Bus, stream string) Use {
	t.Helper()
	looks(t, b, 1)
	for _, u := range b.Uses() {
		if u.Stream == stream {
			return u
		}
	}
	t.Fatalf("nothing is said of %s: %v", stream, b.Uses())
	return Use{}
}

// A full memory still stores new states. It loses those that were written longest ago, as if they had never existed: a reconciler
// with a cached revision of one meets a conflict, loads nothing, and takes inventory.
func TestAFullStateStreamDropsItsOldest(t *testing.T) {
	t.Parallel()
	const room, size, keys = 256 << 10, 8 << 10, 100
	s := serve(t)
	b := connect(t, s, func(c *Config) { c.MaxStateBytes = room })
	st := store(t, b)
	state := bytes.Repeat([]byte("x"), size)
	var first uint64
	for n := range keys {
		if revision := saved(t, st, keyOf(uid(n)), state); n == 0 {
			first = revision
		}
	}
	remembered := 0
	for n := range keys {
		data, _, err := st.Load(t.Context(), keyOf(uid(n)))
		if err != nil {
			t.Fatal(err)
		}
		if data != nil {
			remembered++
		} else if remembered > 0 {
			t.Errorf("state %d is lost, and an older one is not", n)
		}
	}
	if remembered < room/size*3/4 || remembered > room/size {
		t.Errorf("%d states of %d bytes are remembered in %d", remembered, size, room)
	}
	if u := useOf(t, b, b.names.state("job")); u.MaxBytes != room || u.Bytes > room || u.Bytes < room*3/4 {
		t.Errorf("use %+v", u)
	}
	finds(t, inspect(t, s.URL(), func(c *Config) { c.MaxStateBytes = room }),
		about("stream "+b.names.state("job"), finding.Warn, "are full: the oldest go", "--nats-state-bytes"))

	lost := keyOf(uid(0))
	if _, err := st.Save(t.Context(), lost, state, first, false); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("a revision that is lost: %v", err)
	}
	if data, revision, err := st.Load(t.Context(), lost); data != nil || revision != 0 || err != nil {
		t.Errorf("a state that is lost: %q at %d, %v", data, revision, err)
	}
	if _, err := st.Save(t.Context(), lost, state, 0, false); err != nil {
		t.Errorf("a state that is created again: %v", err)
	}
	if err := b.Ready(); err != nil {
		t.Error(err)
	}
}

// A full stream of timers still stores new timers, and they fire. It loses those that were set longest ago.
func TestFullTimersForgetTheirOldest(t *testing.T) {
	t.Parallel()
	const room, keys = 64 << 10, 400
	b := connect(t, serve(t), func(c *Config) { c.MaxTimersBytes = room })
	e := listen(t, b, allPartitions(), nil)
	later := time.Now().Add(time.Hour)
	for n := range keys {
		if err := b.Timers().Set(t.Context(), keyOf(uid(n)), "wake", later); err != nil {
			t.Fatalf("timer %d of %d: %v", n, keys, err)
		}
	}
	if u := useOf(t, b, b.names.timers()); u.MaxBytes != room || u.Bytes > room || u.Bytes < room*3/4 {
		t.Errorf("use %+v", u)
	}
	kept := messages(t, b, b.names.timers())
	if kept == 0 || kept >= keys {
		t.Errorf("%d of %d timers are kept", kept, keys)
	}
	for _, n := range []int{0, keys - 1, keys} { // one that is lost and set again, one that is kept and set again, one that is new
		if err := b.Timers().Set(t.Context(), keyOf(uid(n)), "wake", time.Now()); err != nil {
			t.Fatal(err)
		}
		until(t, fmt.Sprintf("timer %d fires", n), func() bool {
			return e.count(func(d engine.Delivery) bool { return isFired(d) && d.Key() == keyOf(uid(n)) }) == 1
		})
	}
	publish(t, b, observation(keyOf(uid(1)), 7))
	until(t, "facts go on", func() bool { return len(e.versions(keyOf(uid(1)))) == 1 })
}

// The memory that an older version created rejected new states when it was full, and had no bound.
func TestAStateStreamWithoutABoundGetsOne(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s)
	old := b.stateStream("job")
	old.Discard, old.MaxBytes = jetstream.DiscardNew, -1
	if _, err := b.js.CreateStream(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	st := store(t, b)
	if _, err := st.Save(t.Context(), keyOf(uid(1)), []byte("x"), 0, false); err != nil {
		t.Fatal(err)
	}
	if u := useOf(t, b, b.names.state("job")); u.MaxBytes != DefaultStateBytes {
		t.Errorf("use %+v", u)
	}
	for _, want := range append(b.streams(), b.states([]string{"job", "scheduledjob"})...) {
		if want.MaxBytes <= 0 {
			t.Errorf("stream %s has no bound", want.Name)
		}
	}
}

// TestWhatATimerWeighs prints the size of a timer; the bound of the stream follows from it.
func TestWhatATimerWeighs(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	const keys = 100
	for n := range keys {
		key := events.Key{Function: "scheduledjob", Namespace: "a-namespace-of-a-usual-length", UID: keyOf(uid(n)).UID}
		if err := b.Timers().Set(t.Context(), key, "wake", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	each := stateOf(t, b, b.names.timers()).Bytes / keys
	t.Logf("a timer weighs %d bytes: %d of them fit into %s", each, timersBytes/each, bytesText(timersBytes))
	if each*300_000 > timersBytes {
		t.Error("that is more than the bound is made for")
	}
}
