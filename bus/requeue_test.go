package bus

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// quarantine waits until the given number of messages are quarantined.
func quarantine(t *testing.T, v *Inspector, want int) (aside []Quarantined) {
	t.Helper()
	until(t, strconv.Itoa(want)+" messages in the quarantine", func() (ok bool) {
		var err error
		aside, err = v.Quarantined(t.Context())
		return err == nil && len(aside) == want
	})
	return aside
}

// A function breaks on a fact and on a fired timer. When it is fixed, both are put back, delivered once more, and removed from
// the quarantine. The window of duplicates still knows the fact, and lets it pass.
func TestRequeue(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s, patient)
	v := inspect(t, s.URL())
	key := keyOf(uid(1))
	var mended atomic.Bool
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		if !mended.Load() && (versionOf(d.Event()) == 13 || isFired(d)) {
			d.Quarantine(errors.New("it panicked"))
			return
		}
		d.Ack()
	})
	publish(t, b, observation(key, 13))
	if err := b.Timers().Set(t.Context(), key, "x.y", time.Now()); err != nil {
		t.Fatal(err)
	}
	aside := quarantine(t, v, 2)
	for _, q := range aside {
		if q.Key != key.Tokens() || q.Reason != "it panicked" || q.Size == 0 || q.Payload != nil || q.ID == 0 || q.Time.IsZero() {
			t.Errorf("%+v", q)
		}
	}
	if got, want := v.RequeueCommand(aside[0]), "jobstream-reconciler requeue --cluster-name test "+strconv.FormatUint(aside[0].ID, 10); got != want {
		t.Errorf("%q, want %q", got, want)
	}

	mended.Store(true)
	publish(t, b, observation(key, 13)) // still a duplicate of the quarantined one
	for _, q := range aside {
		requeue(t, v, q.ID, false)
	}
	until(t, "both are received again", func() bool {
		return slices.Equal(e.versions(key), []uint64{13, 13}) && e.count(isFired) == 2
	})
	for _, d := range e.all() {
		if fired, ok := d.Event().(events.TimerFired); ok && (fired.Name != "x.y" || d.Key() != key) {
			t.Errorf("a fired timer came back as %+v of %s", fired, d.Key())
		}
	}
	quarantine(t, v, 0)
	for _, q := range aside {
		if err := v.Requeue(t.Context(), q.ID); !errors.Is(err, ErrNotQuarantined) {
			t.Errorf("put back twice: %v", err)
		}
	}
	publish(t, b, observation(key, 14))
	until(t, "the road is open", func() bool { return slices.Equal(e.versions(key), []uint64{13, 13, 14}) })
}

// Any number of clients that put a message back and die before removing it from the quarantine, or do so at the same time, put it
// back once. A message that is quarantined again can be put back again.
func TestRequeueIsHarmlessTwice(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s, patient)
	v := inspect(t, s.URL())
	key := keyOf(uid(1))
	var mended atomic.Bool
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		if !mended.Load() {
			d.Quarantine(errors.New("it panicked"))
			return
		}
		d.Ack()
	})
	publish(t, b, observation(key, 13))
	first := quarantine(t, v, 1)[0]
	again := func(id uint64) { // as Requeue does, up to the crash
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), soon) // a busy machine may need longer than the bus waits
		defer cancel()
		stream, err := b.js.Stream(ctx, b.names.quarantine())
		if err != nil {
			t.Fatal(err)
		}
		stored, err := stream.GetMsg(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := b.original(quarantinedMessage(stored))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.js.PublishMsg(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	again(first.ID)
	until(t, "it is set aside once more", func() bool {
		aside, err := v.Quarantined(t.Context())
		return err == nil && len(aside) == 2
	})
	mended.Store(true)
	requeue(t, v, first.ID, false) // completes the dead client's work; the message was published already
	second := quarantine(t, v, 1)[0]
	if second.ID == first.ID {
		t.Errorf("a number was given out twice: %d", second.ID)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			requeue(t, v, second.ID, true)
		})
	}
	all.Wait()
	quarantine(t, v, 0)
	publish(t, b, observation(key, 14))
	until(t, "what follows is received", func() bool { return slices.Contains(e.versions(key), 14) })
	if got := e.versions(key); !slices.Equal(got, []uint64{13, 13, 13, 14}) { // new, put back and broken on again, put back
		t.Errorf("received %v", got)
	}
}

// Requeue refuses what cannot be put back, with the reason, and the message stays.
func TestRequeueRefuses(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s, patient)
	v := inspect(t, s.URL())
	key := keyOf(uid(1))
	put := func(h nats.Header) uint64 {
		t.Helper()
		ack, err := b.js.PublishMsg(t.Context(), &nats.Msg{Subject: b.names.aside(key.Tokens()), Data: []byte("x"), Header: h})
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	stored := "facts.test.3." + key.Tokens() + ".PodObserved"
	for name, id := range map[string]uint64{
		"only 1 of its 9000000 bytes": put(nats.Header{headerSubject: {stored}, headerTruncated: {"9000000"}}),
		"neither that of a fact":      put(nats.Header{headerSubject: {"$JS.API.STREAM.DELETE.x"}}),
		"of cluster test":             put(nats.Header{headerSubject: {strings.Replace(stored, "test", "prod", 1)}}),
		`its subject ""`:              put(nil),
	} {
		if err := v.Requeue(t.Context(), id); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
	quarantine(t, v, 4)
	if n := messages(t, b, b.names.facts()); n != 0 {
		t.Errorf("%d messages were published", n)
	}
	for _, id := range []uint64{1, 1 << 60} {
		if err := v.Requeue(t.Context(), id); !errors.Is(err, ErrNotQuarantined) {
			t.Errorf("%d: %v", id, err)
		}
	}
}

// Find accepts the number, and the origin that the message's header and the log show.
func TestQuarantinedMessageNamesItsCommand(t *testing.T) {
	t.Parallel()
	s := serve(t)
	in := func(c *Config) { c.Cluster = "prod eu" }
	b := connect(t, s, in)
	listen(t, b, allPartitions(), func(d engine.Delivery) { d.Quarantine(errors.New("it panicked")) })
	f := observation(keyOf(uid(1)), 1)
	f.Cluster = "prod eu"
	publish(t, b, f)
	v := inspect(t, s.URL(), in)
	q := quarantine(t, v, 1)[0]
	stream, err := b.js.Stream(t.Context(), b.names.quarantine())
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(t.Context(), q.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Header.Get("Jobstream-Key"); got != f.Key.Tokens() {
		t.Errorf("key %q", got)
	}
	command, origin := m.Header.Get("Jobstream-Requeue"), q.Stream+"/"+strconv.FormatUint(q.Sequence, 10)
	if command != "jobstream-reconciler requeue --cluster-name 'prod eu' "+origin {
		t.Errorf("command %q", command)
	}
	for _, which := range []string{origin, strconv.FormatUint(q.ID, 10)} {
		if id, err := v.Find(t.Context(), which); err != nil || id != q.ID {
			t.Errorf("%s is %d, %v; want %d", which, id, err, q.ID)
		}
	}
	if _, err := v.Find(t.Context(), q.Stream+"/1"); !errors.Is(err, ErrNotQuarantined) {
		t.Error(err)
	}
	for _, nonsense := range []string{"", "x", "-1", "a/b", "1/"} {
		if _, err := v.Find(t.Context(), nonsense); err == nil || errors.Is(err, ErrNotQuarantined) {
			t.Errorf("%q: %v", nonsense, err)
		}
	}
}

// A message that cannot be read may have been news for its key: the key's state is deleted, others' are not, and a fired timer
// makes the key take its next turn.
func TestUnreadableMessageUnsettlesItsKey(t *testing.T) {
	t.Parallel()
	s := serve(t)
	b := connect(t, s, patient)
	st := store(t, b)
	key, other := keyOf(uid(1)), keyOf(uid(2))
	for _, k := range []events.Key{key, other} {
		if _, err := st.Save(t.Context(), k, []byte("x"), 0, false); err != nil {
			t.Fatal(err)
		}
	}
	e := listen(t, b, allPartitions(), nil)
	if _, err := b.js.Publish(t.Context(), observation(key, 1).Subject(), []byte("no JSON")); err != nil {
		t.Fatal(err)
	}
	ofKey := func(d engine.Delivery) bool { return isFired(d) && d.Key() == key }
	until(t, "the key is woken", func() bool { return e.count(ofKey) == 1 })
	if data, rev, err := st.Load(t.Context(), key); err != nil || data != nil || rev != 0 {
		t.Errorf("the key remembers %q at %d, %v", data, rev, err)
	}
	if data, _, err := st.Load(t.Context(), other); err != nil || string(data) != "x" {
		t.Errorf("another key remembers %q, %v", data, err)
	}
	if n := e.count(nil); n != 1 {
		t.Errorf("%d deliveries", n)
	}
	quarantine(t, inspect(t, s.URL()), 1)
}

// requeue puts a message back, again if a busy server has not answered in time. That another has put it back is an error unless they
// race, or an unanswered try may have been it.
func requeue(t *testing.T, v *Inspector, id uint64, racing bool) {
	t.Helper()
	for deadline, gone := time.Now().Add(soon), racing; ; gone = true {
		err := v.Requeue(t.Context(), id)
		switch {
		case err == nil, gone && errors.Is(err, ErrNotQuarantined):
			return
		case errors.Is(err, ErrNotQuarantined), time.Now().After(deadline):
			t.Error(err)
			return
		}
		<-time.After(50 * time.Millisecond)
	}
}
