package bus

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/internal/engine"
)

// A server that stands alone dies by kill -9, with the consumers in its memory. What is below the stored floor does not come
// again; what was not acknowledged does, and all that comes after it.
func TestAConsumerBeginsAtTheFloor(t *testing.T) {
	t.Parallel()
	n := &node{Name: "alone", Dir: t.TempDir(), Port: freePort(t)}
	n.start(t)
	t.Cleanup(n.kill)
	alone := func(c *Config) { c.URL = fmt.Sprintf("nats://127.0.0.1:%d", n.Port) }
	b := connect(t, nil, alone, patient)
	store(t, b)
	key := keyOf(uid(1))
	before := listen(t, b, allPartitions(), func(d engine.Delivery) {
		if versionOf(d.Event()) != 40 {
			d.Ack()
		}
	})
	for v := range uint64(50) {
		publish(t, b, observation(key, v+1))
	}
	until(t, "all are received", func() bool { return len(before.versions(key)) == 50 })
	f := floor{bus: b, stream: b.names.state("job"), subject: b.names.floor("job", key.Partition())}
	first := sequence(t, b, 1)
	until(t, "the floor is stored", func() bool {
		at, err := f.load(t.Context())
		return err == nil && at == beginning{sequence: first + 39}
	})
	if c := consumerOf(t, b, key.Partition()); !c.Config.MemoryStorage {
		t.Error("the consumer is in a file")
	}
	before.end(t)
	n.kill()
	n.start(t)

	b = connect(t, nil, alone, patient)
	after := listen(t, b, allPartitions(), nil)
	publish(t, b, observation(key, 51))
	until(t, "what is new is received", func() bool { return slices.Contains(after.versions(key), 51) })
	if got, want := after.versions(key), []uint64{40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51}; !slices.Equal(got, want) {
		t.Errorf("received %v, want %v", got, want)
	}
}

// Whatever stands as a floor, nothing that came later is skipped, also when two reconcilers create the consumer.
func TestFloors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stored func(first uint64) string // nothing where nil
		want   []uint64
	}{
		"none":                        {nil, []uint64{1, 2, 3, 4}},
		"before the first":            {func(first uint64) string { return fmt.Sprint(first - 2) }, []uint64{1, 2, 3, 4}},
		"in between":                  {func(first uint64) string { return fmt.Sprint(first + 1) }, []uint64{3, 4}},
		"beyond the end":              {func(first uint64) string { return fmt.Sprint(first + 1000) }, []uint64{1, 2, 3, 4}},
		"of a fact that came later":   {func(first uint64) string { return fmt.Sprint(first + 3) }, []uint64{1, 2, 3, 4}},
		"0":                           {func(uint64) string { return "0" }, []uint64{1, 2, 3, 4}},
		"the greatest number":         {func(uint64) string { return "18446744073709551615" }, []uint64{1, 2, 3, 4}},
		"deleted with `nats kv del`":  {func(uint64) string { return "" }, []uint64{1, 2, 3, 4}},
		"written by something else":   {func(uint64) string { return "-7 and a half" }, []uint64{1, 2, 3, 4}},
		"of a stream that is no more": {func(uint64) string { return "7" }, []uint64{1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := connect(t, serve(t))
			store(t, b)
			key := keyOf(uid(1))
			publish(t, b, observation(key, 1), observation(key, 2), observation(key, 3))
			if test.stored != nil {
				if _, err := b.js.Publish(t.Context(), b.names.floor("job", key.Partition()), []byte(test.stored(sequence(t, b, 1)))); err != nil {
					t.Fatal(err)
				}
			}
			publish(t, b, observation(key, 4))
			other := connect(t, nil, func(c *Config) { c.URL = b.cfg.URL })
			two := []*ear{listen(t, b, []int{key.Partition()}, nil), listen(t, other, []int{key.Partition()}, nil)}
			received := func() []uint64 {
				return slices.Sorted(slices.Values(append(two[0].versions(key), two[1].versions(key)...)))
			}
			until(t, "the last is received", func() bool { return slices.Contains(received(), 4) && len(received()) >= len(test.want) })
			if got := received(); !slices.Equal(got, test.want) {
				t.Errorf("received %v, want %v", got, test.want)
			}
			if at := consumerOf(t, b, key.Partition()); at.Config.Metadata[missedFacts] != "" {
				t.Error("the consumer has a mark that facts were missed")
			}
		})
	}
}

// The stream drops facts while no reconciler runs, and the server, which restarts, forgets how far the last one was. It is a loss, which is
// signalled when a reconciler is back: a list that is published earlier would only drop more facts.
func TestFactsThatWereMissedAreALoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serveIn(t, dir, freePort(t))
	port := portOf(t, s)
	b := connect(t, s, func(c *Config) { c.MaxFactsBytes = 64 << 10 })
	store(t, b)
	key := keyOf(uid(1))
	e := listen(t, b, allPartitions(), nil)
	publish(t, b, observation(key, 1))
	f := floor{bus: b, stream: b.names.state("job"), subject: b.names.floor("job", key.Partition())}
	until(t, "the floor is stored", func() bool { at, err := f.load(t.Context()); return err == nil && at.sequence > 0 })
	e.end(t)
	for v := range uint64(1000) {
		if err := b.Publish(t.Context(), observation(key, v+2)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	behind := b.top.evicted(t.Context(), false)
	s.Shutdown()
	serveIn(t, dir, port)
	until(t, "the bus is found again", func() bool { return b.Ready() == nil })
	for range 3 {
		behind = b.top.evicted(t.Context(), behind)
	}
	if losses(b) != 0 {
		t.Error("the loss was signalled while no reconciler listened")
	}
	back := listen(t, b, allPartitions(), nil)
	until(t, "the newest is received", func() bool { return slices.Contains(back.versions(key), 1001) })
	other := connect(t, nil, func(c *Config) { c.URL = b.cfg.URL }) // a trigger that did not see anything of that
	other.top.evicted(t.Context(), false)
	signalled(t, other)
	b.top.evicted(t.Context(), behind)
	signalled(t, b)
	b.top.evicted(t.Context(), false)
	if losses(b) != 0 {
		t.Error("one loss was signalled twice")
	}
}

// Two reconcilers create a consumer at once, after they have read different floors: the second takes what the first has created.
func TestTheFirstBeginningCounts(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	key := keyOf(uid(1))
	publish(t, b, observation(key, 1), observation(key, 2), observation(key, 3))
	first := b.consumer(factsConsumer("job", key.Partition()), b.names.factsPartition("job", key.Partition()), factsWindow)
	first.MemoryStorage, first.DeliverPolicy, first.OptStartSeq = true, jetstream.DeliverByStartSequencePolicy, sequence(t, b, 2)
	if _, err := b.js.CreateConsumer(t.Context(), b.names.facts(), first); err != nil {
		t.Fatal(err)
	}
	second := &subscription{bus: b, stream: b.names.facts(), config: b.consumer(first.Durable, first.FilterSubject, factsWindow)}
	if _, err := second.create(t.Context()); !errors.Is(err, jetstream.ErrConsumerExists) {
		t.Errorf("the second creation: %v", err)
	}
	e := listen(t, b, []int{key.Partition()}, nil)
	until(t, "two are received", func() bool { return slices.Equal(e.versions(key), []uint64{2, 3}) })
}

// A reconciler that meets the consumer of an earlier version takes it as it is: to replace it would take a permission that
// reconcilers do not have.
func TestAConsumerInAFileStays(t *testing.T) {
	t.Parallel()
	b := connect(t, serve(t))
	key := keyOf(uid(1))
	old := b.consumer(factsConsumer("job", key.Partition()), b.names.factsPartition("job", key.Partition()), 7)
	old.MemoryStorage = false
	if _, err := b.js.CreateConsumer(t.Context(), b.names.facts(), old); err != nil {
		t.Fatal(err)
	}
	e := listen(t, b, []int{key.Partition()}, nil)
	publish(t, b, observation(key, 1))
	until(t, "it is received", func() bool { return len(e.versions(key)) == 1 })
	if c := consumerOf(t, b, key.Partition()); c.Config.MemoryStorage || c.Config.MaxAckPending != factsWindow {
		t.Errorf("in memory: %v, window %d", c.Config.MemoryStorage, c.Config.MaxAckPending)
	}
}

// In a cluster the servers would begin a consumer in memory where it began when it was created.
func TestInAClusterConsumersAreInFiles(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: elects leaders, which takes many seconds")
	}
	_, url := trio(t)
	b := connect(t, nil, func(c *Config) { c.URL, c.Replicas, c.ConnectTimeout = url, 1, soon })
	key := keyOf(uid(1))
	e := listen(t, b, []int{key.Partition()}, nil)
	publish(t, b, observation(key, 1))
	until(t, "it is received", func() bool { return len(e.versions(key)) == 1 })
	if consumerOf(t, b, key.Partition()).Config.MemoryStorage {
		t.Error("the consumer is in memory")
	}
}

func consumerOf(t *testing.T, b *Bus, partition int) *jetstream.ConsumerInfo {
	t.Helper()
	c, err := b.js.Consumer(t.Context(), b.names.facts(), factsConsumer("job", partition))
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo()
}

// sequence returns that of the n-th stored fact.
func sequence(t *testing.T, b *Bus, n uint64) uint64 {
	t.Helper()
	s, err := b.js.Stream(t.Context(), b.names.facts())
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.FirstSeq + n - 1
}
