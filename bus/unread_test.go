package bus

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// ofTomorrow is a message as a trigger of another version publishes it: valid except for the unknown type.
func ofTomorrow(t testing.TB, f events.Fact, typ string) *nats.Msg {
	t.Helper()
	data, err := events.Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	ours := []byte("dev.jobstream.fact." + f.Event.Type().Versioned())
	if !bytes.Contains(data, ours) {
		t.Fatalf("%s has no type %s", data, ours)
	}
	return &nats.Msg{Subject: f.Subject(), Data: bytes.Replace(data, ours, []byte("dev.jobstream.fact."+typ), 1)}
}

func isUnreadTimer(d engine.Delivery) bool {
	fired, ok := d.Event().(events.TimerFired)
	return ok && fired.Name == events.Unread
}

// A fact that only a newer program can read costs an inventory, and neither a state nor a place in the quarantine. A message that
// is no fact is quarantined as ever.
func TestFactsOfAnotherVersionArePassedBy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		message func(t *testing.T, f events.Fact) *nats.Msg
		passed  bool
	}{
		{"a type that there is not yet", func(t *testing.T, f events.Fact) *nats.Msg { return ofTomorrow(t, f, "PodMoved.v1") }, true},
		{"a version that there is not yet", func(t *testing.T, f events.Fact) *nats.Msg { return ofTomorrow(t, f, "PodObserved.v2") }, true},
		{"on the subject of another key", func(t *testing.T, f events.Fact) *nats.Msg {
			m := ofTomorrow(t, f, "PodObserved.v2")
			f.Key.Namespace = "other"
			m.Data = ofTomorrow(t, f, "PodObserved.v2").Data
			return m
		}, false},
		{"of another cluster", func(t *testing.T, f events.Fact) *nats.Msg {
			m := ofTomorrow(t, f, "PodObserved.v2")
			f.Cluster = "other"
			m.Data = ofTomorrow(t, f, "PodObserved.v2").Data
			return m
		}, false},
		{"no JSON", func(_ *testing.T, f events.Fact) *nats.Msg {
			return &nats.Msg{Subject: f.Subject(), Data: []byte("hello")}
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var unread, aside atomic.Int32
			b := connect(t, serve(t), patient, func(c *Config) {
				c.Unread, c.SetAside = func(string) { unread.Add(1) }, func(string) { aside.Add(1) }
			})
			st, key := store(t, b), keyOf(uid(1))
			if _, err := st.Save(t.Context(), key, []byte("memory"), 0, false); err != nil {
				t.Fatal(err)
			}
			e := listen(t, b, []int{key.Partition()}, nil)
			const facts = 200 // more than a partition delivers at once: none waits for a reconciler that can read it
			for v := range uint64(facts) {
				if _, err := b.js.PublishMsg(t.Context(), test.message(t, observation(key, v+1))); err != nil {
					t.Fatal(err)
				}
			}
			publish(t, b, observation(key, facts+1))
			until(t, "a fact behind them is received", func() bool { return len(e.versions(key)) == 1 })
			until(t, "the key is woken", func() bool { return e.count(isFired) > 0 })
			data, _, err := st.Load(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if passed := string(data) == "memory" && unread.Load() == facts && aside.Load() == 0 && e.count(isUnreadTimer) > 0; passed != test.passed {
				t.Errorf("memory %q, %d unread, %d set aside, %d timers for what was not read", data, unread.Load(), aside.Load(), e.count(isUnreadTimer))
			}
			if kept := messages(t, b, b.names.quarantine()); kept > 0 == test.passed {
				t.Errorf("%d messages were set aside", kept)
			}
		})
	}
}

// A key with an endless flow of such facts is still woken, and each partition has its own moment.
func TestWhenUnreadFactsAreRungFor(t *testing.T) {
	t.Parallel()
	began := time.Now()
	moments := map[time.Time]bool{}
	for partition := range events.Partitions {
		fires := nextUnread(partition, began)
		if in := fires.Sub(began); in <= 0 || in > unreadEvery {
			t.Errorf("partition %d fires in %v", partition, in)
		}
		if just := fires.Add(-time.Nanosecond); !nextUnread(partition, just).Equal(fires) {
			t.Errorf("partition %d: another fact moves the timer from %v to %v", partition, fires, nextUnread(partition, just))
		}
		moments[fires] = true
	}
	if len(moments) != events.Partitions {
		t.Errorf("%d partitions wake their keys at %d moments", events.Partitions, len(moments))
	}
}
