package bus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// Kubernetes requires of the UID in an owner reference only that it is not empty. A UID that no object can have is rejected by
// every method before it is sent, and the connection stays open.
func TestWhatCannotBeSentCostsNoConnection(t *testing.T) {
	s := serve(t)
	b := connect(t, s)
	store, err := b.Store("job")
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{events.MaxUID + 1, 1000, 4000, 4010, 5000, 100_000} {
		key := keyOf(strings.Repeat("u", length))
		for road, send := range map[string]func() error{
			"publish": func() error { return b.Publish(t.Context(), observation(key, 1)) },
			"save":    func() error { _, err := store.Save(t.Context(), key, []byte("state"), 0, false); return err },
			"load":    func() error { _, _, err := store.Load(t.Context(), key); return err },
			"forget":  func() error { return store.Forget(t.Context(), key) },
			"timer":   func() error { return b.Timers().Set(t.Context(), key, "again", time.Now()) },
		} {
			err := send()
			if err == nil || !strings.Contains(err.Error(), "more than the limit of 64") {
				t.Errorf("%s with a UID of %d bytes: %.300v", road, length, err)
			}
			var permanent interface{ Permanent() bool }
			if road == "publish" && (!errors.As(err, &permanent) || !permanent.Permanent()) {
				t.Errorf("%s: %v does not say that trying again is useless", road, err)
			}
		}
	}
	if err := b.Timers().Set(t.Context(), keyOf(uid(1)), strings.Repeat("t", 5000), time.Now()); err == nil {
		t.Error("a timer whose name fits into no subject was set")
	}
	publish(t, b, observation(keyOf(uid(1)), 1))
	if err := b.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(b.Err(), b.Ready()); err != nil {
		t.Error(err)
	}
}

// A client that may publish facts publishes such keys itself. They are quarantined, and consumers go on; today's servers store a
// subject that is barely short enough, and then the subject of the state would have been too long.
func TestFactsOfImpossibleKeysAreSetAside(t *testing.T) {
	s := serve(t)
	b := connect(t, s)
	if _, err := b.Store("job"); err != nil {
		t.Fatal(err)
	}
	stranger, err := nats.Connect(s.URL(), nats.Timeout(soon))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.Close)
	lengths := []int{events.MaxUID + 1, 1000, 3900, 3950, 3980, 4000, 4005, 4010}
	for _, length := range lengths {
		f := observation(keyOf(strings.Repeat("u", length)), 1)
		data, err := events.Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := stranger.Publish(f.Subject(), data); err != nil {
			t.Fatal(err)
		}
	}
	other := keyOf(uid(7)) // a fact about another object than its subject's
	data, err := events.Encode(events.Fact{Cluster: "test", Key: other, Event: events.JobObserved{Job: events.Job{Namespace: "evil", Name: "pi", UID: other.UID}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stranger.Publish("facts.test."+other.Tokens()+".JobObserved", data), stranger.FlushTimeout(soon)); err != nil {
		t.Fatal(err)
	}
	publish(t, b, observation(keyOf(uid(1)), 2))
	got := make(chan events.Fact, 100)
	listen(t, b, allPartitions(), func(d engine.Delivery) { got <- events.Fact{Key: d.Key(), Event: d.Event()}; d.Ack() })
	for done := false; !done; {
		select {
		case f := <-got:
			if err := f.Key.Valid(); err != nil {
				t.Errorf("delivered: %.200v", err)
			}
			if f.Key == other {
				if _, is := f.Event.(events.JobObserved); is {
					t.Error("a Job of another namespace was delivered")
				}
			}
			done = f.Key == keyOf(uid(1))
		case <-time.After(soon):
			t.Fatal("an honest fact does not come")
		}
	}
	until(t, "all are set aside", func() bool {
		all, err := b.Quarantined(t.Context())
		return err == nil && len(all) == len(lengths)+1
	})
	if err := errors.Join(b.Err(), b.Ready()); err != nil {
		t.Error(err)
	}
}

// A protocol error from the server closes the connection, and nats.go does not open another.
func TestConnectionThatIsClosedForGoodSaysSo(t *testing.T) {
	b := connect(t, serve(t))
	if err := b.nc.Publish(strings.Repeat("x", 5000), nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.Ended():
	case <-time.After(soon):
		t.Fatal("it does not say that it has ended")
	}
	for what, err := range map[string]error{"Err": b.Err(), "Ready": b.Ready()} {
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "maximum control line exceeded") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A caller that meets the closed connection before nats.go has reported why must get the cause, not that consequence.
func TestClosedConnectionIsNeverMetWithoutItsCause(t *testing.T) {
	b := connect(t, serve(t))
	if err := b.nc.Publish(strings.Repeat("x", 5000), nil); err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(soon); !b.nc.IsClosed(); {
		if time.Now().After(late) {
			t.Fatal("the connection is not closed")
		}
	}
	if err := b.Err(); err == nil || !strings.Contains(strings.ToLower(err.Error()), "maximum control line exceeded") {
		t.Errorf("Err says %v", err)
	}
}

func TestCloseIsNoTrouble(t *testing.T) {
	b := connect(t, serve(t))
	b.Close()
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}
