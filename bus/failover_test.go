package bus

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/finding"
)

var failoverRounds = flag.Int("rounds", size.FailoverRounds, "how often TestFailover kills a server: the leader of the facts, of the states, and of the cluster, in turn")

// failover is a cluster of three under load. It records everything that the servers confirm, and compares it with what they hold
// at the end.
type failover struct {
	t                     *testing.T
	nodes                 map[string]*node
	trigger               *Bus
	reconcilers           []*Bus
	facts, states         beats // confirmations
	published, deliveries atomic.Int64
	unsure                atomic.Int64 // saves without an answer

	mu        sync.Mutex
	confirmed map[uint64]bool            // versions of facts
	applied   map[events.Key][][2]uint64 // confirmed saves: revision, version
}

// failoverKeys is the number of keys that the facts are about.
const failoverKeys = 64

// Servers die by kill -9 under load, the leader of one stream after the other. Every confirmed fact is delivered, each enters its
// key's state once, no confirmed state is undone, and no loss is signalled.
func TestFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: elects leaders, which takes many seconds")
	}
	f := &failover{t: t, confirmed: map[uint64]bool{}, applied: map[events.Key][][2]uint64{}}
	nodes, url := processes(t)
	f.nodes = nodes
	open := func() *Bus { return ofThree(t, url) }
	f.trigger, f.reconcilers = open(), []*Bus{open(), open()}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var consumers, writers sync.WaitGroup
	for _, b := range f.reconcilers {
		st := store(t, b)
		consumers.Go(func() {
			_ = b.Consume(ctx, "job", allPartitions(), func(d engine.Delivery) { f.apply(ctx, st, d) })
		})
	}
	writing, enough := context.WithCancel(ctx)
	defer enough()
	writers.Go(func() { f.publish(writing) })
	st := store(t, f.reconcilers[0])
	writers.Go(func() { f.count(writing, st) })

	until(t, "facts are confirmed and applied", func() bool { return f.facts.since(time.Time{}) > 10 && f.deliveries.Load() > 10 })
	var rows []round
	for n := range *failoverRounds {
		rows = append(rows, f.round(n))
	}
	f.inspect(url)
	enough()
	writers.Wait()
	lost, twice := f.settle(store(t, f.trigger))
	stop()
	consumers.Wait()
	f.print(os.Stdout, rows, lost, twice)
	for _, b := range append(f.reconcilers, f.trigger) {
		if losses(b) > 0 {
			t.Error("a loss was signalled, and nothing is lost")
		}
	}
}

// publish sends facts in small batches and records which of them are confirmed.
func (f *failover) publish(ctx context.Context) {
	const batch = 3
	again := time.NewTicker(20 * time.Millisecond) // a pace that three servers on a busy machine can keep
	defer again.Stop()
	for version := uint64(1); ; {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		var sent []uint64
		for range batch {
			if f.trigger.Publish(f.t.Context(), observation(keyOf(uid(int(version%failoverKeys))), version)) == nil {
				sent = append(sent, version)
			}
			version++
		}
		f.published.Add(batch)
		if err := f.trigger.Flush(f.t.Context()); err != nil {
			continue // these may be stored or not
		}
		f.facts.beat()
		f.mu.Lock()
		for _, v := range sent {
			f.confirmed[v] = true
		}
		f.mu.Unlock()
	}
}

// apply adds the fact to its key's state, unless it is there already.
func (f *failover) apply(ctx context.Context, st *Store, d engine.Delivery) {
	f.deliveries.Add(1)
	key, version := d.Key(), versionOf(d.Event())
	data, revision, err := st.Load(ctx, key)
	var have []uint64
	if err == nil && data != nil {
		err = json.Unmarshal(data, &have)
	}
	if err != nil {
		d.Nak(100 * time.Millisecond)
		return
	}
	if slices.Contains(have, version) {
		d.Ack()
		return
	}
	data, _ = json.Marshal(append(have, version)) // numbers
	saved, err := st.Save(ctx, key, data, revision, false)
	if err != nil {
		if !errors.Is(err, engine.ErrConflict) {
			f.unsure.Add(1)
		}
		d.Nak(100 * time.Millisecond)
		return
	}
	f.mu.Lock()
	f.applied[key] = append(f.applied[key], [2]uint64{saved, version})
	f.mu.Unlock()
	d.Ack()
}

// count saves one number after the other. It fails on every state except the last confirmed one, or one that it has tried since.
func (f *failover) count(ctx context.Context, st *Store) {
	key := keyOf(uid(failoverKeys + 1))
	var number, confirmed, revision uint64
	for ctx.Err() == nil {
		data, at, err := st.Load(ctx, key)
		if err != nil {
			continue
		}
		var have uint64
		if data != nil {
			_ = json.Unmarshal(data, &have)
		}
		if have < confirmed || have > number || at < revision {
			f.t.Errorf("the state is %d at %d; %d was confirmed at %d, and %d tried", have, at, confirmed, revision, number)
			return
		}
		number++
		data, _ = json.Marshal(number) // a number
		if saved, err := st.Save(ctx, key, data, at, false); err == nil {
			f.states.beat()
			confirmed, revision = number, saved
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond): // a pace
		}
	}
}

// round describes the death of one server.
type round struct {
	killed        string
	led           []string // facts, states, cluster: what it was the leader of
	facts, states time.Duration
}

// round kills a leader, waits until everything is confirmed again, and brings the server back.
func (f *failover) round(n int) (r round) {
	t := f.t
	t.Helper()
	until(t, "a leader is known", func() bool {
		leaders := map[string]string{
			"facts":  leader(t, f.trigger, f.trigger.names.facts()),
			"states": leader(t, f.trigger, f.trigger.names.state("job")),
		}
		for name, one := range f.nodes {
			if one.leads() {
				leaders["cluster"] = name
			}
		}
		r.killed, r.led = leaders[[]string{"facts", "states", "cluster"}[n%3]], nil
		for _, what := range slices.Sorted(maps.Keys(leaders)) {
			if leaders[what] == r.killed {
				r.led = append(r.led, what)
			}
		}
		return r.killed != ""
	})
	died := time.Now()
	f.nodes[r.killed].kill()
	until(t, "facts and states are confirmed again", func() bool { return f.facts.since(died) > 20 && f.states.since(died) > 20 })
	f.nodes[r.killed].start(t)
	until(t, "all replicas are current", func() bool { return f.whole() })
	r.facts, r.states = f.facts.gap(died), f.states.gap(died)
	t.Logf("round %d: %+v", n+1, r)
	return r
}

// whole checks that every stream has three replicas, none of them behind.
func (f *failover) whole() bool {
	for _, want := range append(f.trigger.streams(), f.trigger.states([]string{"job"})...) {
		s, err := f.trigger.find(f.t.Context(), want.Name)
		if err != nil || s.CachedInfo().Cluster == nil || s.CachedInfo().Cluster.Leader == "" || len(s.CachedInfo().Cluster.Replicas) != 2 {
			return false
		}
		for _, p := range s.CachedInfo().Cluster.Replicas {
			if p.Offline || !p.Current {
				return false
			}
		}
	}
	return true
}

// inspect runs the doctor, who must find three replicas of everything, and no fault.
func (f *failover) inspect(url string) {
	want := []expected{about("nats jetstream", finding.OK), about("nats permissions", finding.OK),
		about("nats cluster", finding.OK, `cluster "trio"`, "3 replicas are asked for")}
	for _, name := range []string{f.trigger.names.timers(), f.trigger.names.quarantine(), f.trigger.names.events()} {
		want = append(want, about("stream "+name, finding.OK, "replicas 3, leader nats-"))
	}
	all := finds(f.t, inspect(f.t, url, func(c *Config) { c.Replicas = 3 }), want...)
	for name := range f.nodes { // those that lead a stream show their clocks
		if _, ok := all["clock of nats server "+name]; ok {
			return
		}
	}
	f.t.Error("no server's clock was read")
}

// settle waits until every confirmed fact is in its key's state, and counts what is lost and what is there twice.
func (f *failover) settle(st *Store) (lost, twice int) {
	t := f.t
	state := func(key events.Key) (have []uint64) {
		data, _, err := st.Load(t.Context(), key)
		if err != nil {
			return nil
		}
		_ = json.Unmarshal(data, &have) // nothing is missing everything
		return have
	}
	all := map[events.Key][]uint64{}
	for deadline := time.Now().Add(2 * soon); ; <-time.After(200 * time.Millisecond) {
		seen := map[uint64]int{}
		for n := range failoverKeys {
			key := keyOf(uid(n))
			all[key] = state(key)
			for _, v := range all[key] {
				seen[v]++
			}
		}
		lost, twice = 0, 0
		for v := range f.confirmed {
			if seen[v] == 0 {
				lost++
			}
		}
		for _, n := range seen {
			twice += n - 1
		}
		if lost == 0 || time.Now().After(deadline) {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, saves := range f.applied { // each confirmed save stands, in the order of the revisions
		slices.SortFunc(saves, func(a, b [2]uint64) int { return int(int64(a[0]) - int64(b[0])) })
		at := -1
		for _, s := range saves {
			next := slices.Index(all[key], s[1])
			if next <= at {
				t.Errorf("%s: fact %d, saved at revision %d, stands at %d, after %d", key, s[1], s[0], next, at)
			}
			at = next
		}
	}
	if lost > 0 || twice > 0 {
		t.Errorf("%d confirmed facts are lost, %d were applied twice", lost, twice)
	}
	return lost, twice
}
