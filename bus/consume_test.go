package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
	"github.com/jobstream/jobstream/internal/engine"
)

func TestFactsOfTwoTriggersAreOne(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := connect(t, s), connect(t, s)
	const facts = 500
	var both sync.WaitGroup
	for _, bus := range []*Bus{a, b} {
		both.Go(func() {
			for n := range facts {
				if err := bus.Publish(t.Context(), observation(keyOf(uid(n%7)), uint64(n+1))); err != nil {
					t.Error(err)
				}
			}
			if err := bus.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if n := messages(t, a, a.names.facts()); n != facts {
		t.Errorf("%d facts are stored, want %d", n, facts)
	}
}

func TestEveryPartitionKeepsItsOrder(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), func(c *Config) { c.AckWait = soon }) // redeliveries on a busy machine are out of order
	e := listen(t, b, allPartitions(), nil)
	const keys, each = 64, 50
	for v := range each {
		for k := range keys {
			if err := b.Publish(t.Context(), observation(keyOf(uid(k)), uint64(v+1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	until(t, "all facts are received", func() bool { return e.count(nil) >= keys*each })
	for k := range keys {
		if got := e.versions(keyOf(uid(k))); len(got) != each || !slices.IsSorted(got) {
			t.Errorf("key %d received %v", k, got)
		}
	}
}

// The partition that the server computes is Key.Partition's, whatever the UID looks like: timers are published with the latter.
func TestPartitionIsTheServers(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), patient)
	seen := map[string]bool{}
	var mu sync.Mutex
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		partition := strings.Split(d.(*delivery).msg.Subject(), ".")[2]
		if want := fmt.Sprint(d.Key().Partition()); partition != want {
			t.Errorf("%s came in partition %s, Key.Partition says %s", d.Key(), partition, want)
		}
		mu.Lock()
		seen[partition] = true
		mu.Unlock()
		d.Ack()
	})
	sent := map[events.Key]bool{}
	uids := map[string]bool{} // a UID belongs to one object: a fact's id does not name the namespace
	rapid.Check(t, func(r *rapid.T) {
		key := events.Key{
			Function:  "job",
			Namespace: rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?`).Draw(r, "namespace"),
			UID:       keyOf(rapid.OneOf(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), rapid.StringMatching(`[!-~]{1,60}`)).Draw(r, "uid")).UID,
		}
		if uids[string(key.UID)] {
			return
		}
		sent[key], uids[string(key.UID)] = true, true
		if err := b.Publish(t.Context(), observation(key, 1)); err != nil {
			r.Fatal(err)
		}
	})
	until(t, "all facts are received", func() bool { return e.count(nil) >= len(sent) })
	for key := range sent {
		if len(e.versions(key)) != 1 {
			t.Errorf("%s was received %d times", key, len(e.versions(key)))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < min(events.Partitions*3/4, len(sent)/2) {
		t.Errorf("only %d partitions were used", len(seen))
	}
}

func TestNakComesAgain(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	key := keyOf(uid(1))
	var first atomic.Int64
	e := listen(t, b, []int{key.Partition()}, func(d engine.Delivery) {
		if first.CompareAndSwap(0, time.Now().UnixNano()) {
			d.Nak(300 * time.Millisecond)
			return
		}
		d.Ack()
	})
	publish(t, b, observation(key, 1))
	until(t, "the fact comes again", func() bool { return e.count(nil) == 2 })
	if took := time.Since(time.Unix(0, first.Load())); took < 300*time.Millisecond {
		t.Errorf("came again after %v", took)
	}
}

func TestSilenceIsRedeliveredAndProgressIsNot(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t), func(c *Config) { c.AckWait = 10 * time.Second })
	silent, working := keyOf(uid(1)), keyOf(uid(2))
	hand := make(chan engine.Delivery, 1)
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		if d.Key() == working {
			d.InProgress()
			select {
			case hand <- d:
			default: // once more: the test counts
			}
		}
	})
	publish(t, b, observation(silent, 1), observation(working, 1))
	work := <-hand
	until(t, "the silent one comes again, twice", func() bool {
		work.InProgress()
		return len(e.versions(silent)) >= 3
	})
	if n := len(e.versions(working)); n != 1 {
		t.Errorf("what was in progress was delivered %d times", n)
	}
	work.Ack()
}

func TestStopGivesBackWhatWasFetched(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := connect(t, s, func(c *Config) { c.AckWait = time.Minute }), connect(t, s, func(c *Config) { c.AckWait = time.Minute })
	key := keyOf(uid(1))
	for v := range 50 {
		publish(t, a, observation(key, uint64(v+1)))
	}
	stuck := make(chan struct{})
	first := listen(t, a, []int{key.Partition()}, func(d engine.Delivery) { <-stuck; d.Nak(0) })
	until(t, "one delivery is in hand", func() bool { return first.count(nil) == 1 })
	second := listen(t, b, []int{key.Partition()}, nil)
	first.stop()
	close(stuck)
	first.end(t)
	// With an AckWait of a minute, only what was given back comes in time.
	until(t, "the second receives all", func() bool {
		got := second.versions(key)
		slices.Sort(got)
		return len(slices.Compact(got)) == 50
	})
	if n := first.count(nil); n > 2 {
		t.Errorf("the first was handed %d deliveries, want only what was in its hand", n)
	}
}

func TestConsumeRefusesPartitionsThatDoNotExist(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	if err := b.Consume(t.Context(), "job", []int{32}, nil); err == nil {
		t.Error("partition 32 was accepted")
	}
}

func TestPoisonIsSetAsideAndTheRestFlows(t *testing.T) {
	t.Parallel()
	var counted, others atomic.Int64
	began := time.Now()
	b := connect(t, serve(t), func(c *Config) {
		c.SetAside = func(function string) {
			if counted.Add(1); function != "job" {
				others.Add(1)
			}
		}
	})
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), func(d engine.Delivery) {
		if versionOf(d.Event()) == 13 {
			d.Quarantine(errors.New("it panicked:\nindex out of range"))
			d.Quarantine(errors.New("and again")) // an answer that is repeated counts once
			return
		}
		d.Ack()
	})
	subject := observation(key, 1).Subject()
	raw := func(data string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		if _, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	stray := observation(keyOf(uid(2)), 1) // its key differs from its subject's
	strayData, err := events.Encode(stray)
	if err != nil {
		t.Fatal(err)
	}
	raw("not json")
	raw(`{"specversion":"1.0","id":"x","source":"/clusters/test","type":"dev.jobstream.fact.Nonsense.v1","subject":"job.default.u"}`)
	raw(string(strayData))
	raw("")
	raw(strings.Repeat("x", int(b.nc.MaxPayload())-200)) // no room for headers: must be cut
	publish(t, b, observation(key, 13), observation(key, 14))
	until(t, "the good fact is received", func() bool { return slices.Contains(e.versions(key), 14) })
	var aside []Quarantined
	until(t, "six are set aside", func() bool { return counted.Load() >= 6 }) // to read eight MiB again and again would keep a slow server from it
	until(t, "six are listed", func() bool {
		aside, err = b.Quarantined(t.Context())
		return err == nil && len(aside) == 6 // a busy server may not answer in time
	})
	for _, q := range aside {
		if q.Key != key.Tokens() || q.Sequence == 0 || q.Stream != b.names.facts() || q.Reason == "" || q.Time.Before(began) || q.Time.After(time.Now()) {
			t.Errorf("set aside: %s %s %d %q %v", q.Key, q.Stream, q.Sequence, q.Reason, q.Time)
		}
	}
	if string(aside[0].Payload) != "not json" || !strings.Contains(aside[0].Reason, "not a structured CloudEvent") {
		t.Errorf("the first: %+v", aside[0])
	}
	if got := aside[4]; got.Truncated != int(b.nc.MaxPayload())-200 || len(got.Payload) >= got.Truncated || len(got.Payload) < 8_000_000 {
		t.Errorf("the large one: %d of %d bytes", len(got.Payload), got.Truncated)
	}
	if got := aside[5].Reason; got != "it panicked: index out of range" {
		t.Errorf("reason %q", got)
	}
	until(t, "nothing is left to deliver", func() bool {
		c, err := b.js.Consumer(t.Context(), b.names.facts(), factsConsumer("job", key.Partition()))
		return err == nil && c.CachedInfo().NumAckPending == 0 && c.CachedInfo().NumPending == 0
	})
	if n, strange := counted.Load(), others.Load(); n != 6 || strange > 0 {
		t.Errorf("%d were counted, %d of them for another function, want six for job", n, strange)
	}
}

func TestTwoClustersDoNotMix(t *testing.T) {
	t.Parallel()
	s := serve(t)
	in := func(name string) func(*Config) {
		return func(c *Config) {
			c.Cluster = name
			c.MaxFactsBytes, c.MaxEventsBytes, c.MaxStateBytes = 1<<20, 1<<20, 1<<20 // the server reserves what its disk must hold for all
		}
	}
	// Names that a careless escape would merge.
	clusters := []string{"prod.eu", "prod_eu", "prod-eu", "prod_2Eeu", "test"}
	key := keyOf(uid(1))
	for n, name := range clusters {
		b := connect(t, s, in(name))
		e := listen(t, b, allPartitions(), nil)
		f := observation(key, uint64(n+1))
		f.Cluster = name
		publish(t, b, f)
		store, err := b.Store("job")
		if err != nil {
			t.Fatal(err)
		}
		if data, rev, err := store.Load(t.Context(), key); err != nil || data != nil || rev != 0 {
			t.Errorf("%s: state %q at %d, %v: another cluster's?", name, data, rev, err)
		}
		if _, err := store.Save(t.Context(), key, []byte(name), 0, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		until(t, "the fact is received", func() bool { return e.count(nil) > 0 })
		if got := e.versions(key); !slices.Equal(got, []uint64{uint64(n + 1)}) {
			t.Errorf("%s received %v", name, got)
		}
		f.Cluster = "elsewhere"
		if err := b.Publish(t.Context(), f); err == nil {
			t.Errorf("%s carries facts of another cluster", name)
		}
	}
}
