package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// benchKeys is the number of Jobs whose facts a benchmark publishes.
const benchKeys = 1000

// BenchmarkTurn measures the life of a fact without any work: publish, deliver, load, compare-and-set of 1 KiB, acknowledge.
func BenchmarkTurn(b *testing.B) {
	s := serve(b)
	trigger, reconciler := connect(b, s), connect(b, s)
	st := store(b, reconciler)
	state := make([]byte, 1<<10)
	var turns, conflicts atomic.Int64
	done := make(chan struct{})
	listen(b, reconciler, allPartitions(), func(d engine.Delivery) {
		ctx := context.Background()
		_, rev, err := st.Load(ctx, d.Key())
		if err == nil {
			_, err = st.Save(ctx, d.Key(), state, rev, false)
		}
		if err != nil {
			conflicts.Add(1)
			d.Nak(0)
			return
		}
		d.Ack()
		if turns.Add(1) == int64(b.N) {
			close(done)
		}
	})
	until(b, "all partitions are consumed", func() bool { return consumers(b, reconciler) == 2*events.Partitions })
	b.ResetTimer()
	for n := range b.N {
		if err := trigger.Publish(b.Context(), observation(keyOf(uid(n%benchKeys)), uint64(n+1))); err != nil {
			b.Fatal(err)
		}
	}
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
	b.ReportMetric(float64(conflicts.Load()), "conflicts")
}

// BenchmarkPublish measures one trigger that publishes as fast as it can.
func BenchmarkPublish(b *testing.B) {
	bus := connect(b, serve(b))
	b.ResetTimer()
	for n := range b.N {
		if err := bus.Publish(b.Context(), observation(keyOf(uid(n%benchKeys)), uint64(n+1))); err != nil {
			b.Fatal(err)
		}
	}
	if err := bus.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "facts/s")
}

// BenchmarkDeliver measures one reconciler that acknowledges as fast as it can, all facts of one partition or of all.
func BenchmarkDeliver(b *testing.B) {
	for name, keys := range map[string]int{"one key": 1, "all partitions": benchKeys} {
		b.Run(name, func(b *testing.B) {
			bus := connect(b, serve(b))
			for n := range b.N {
				if err := bus.Publish(b.Context(), observation(keyOf(uid(n%keys)), uint64(n+1))); err != nil {
					b.Fatal(err)
				}
			}
			if err := bus.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
			var received atomic.Int64
			done := make(chan struct{})
			b.ResetTimer()
			listen(b, bus, allPartitions(), func(d engine.Delivery) {
				d.Ack()
				if received.Add(1) == int64(b.N) {
					close(done)
				}
			})
			<-done
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "facts/s")
		})
	}
}

// BenchmarkLatency measures one fact at a time, from Publish to its delivery, on an idle bus.
func BenchmarkLatency(b *testing.B) {
	bus := connect(b, serve(b))
	received := make(chan struct{}, 1)
	listen(b, bus, allPartitions(), func(d engine.Delivery) { d.Ack(); received <- struct{}{} })
	until(b, "all partitions are consumed", func() bool { return consumers(b, bus) == 2*events.Partitions })
	b.ResetTimer()
	for n := range b.N {
		if err := bus.Publish(b.Context(), observation(keyOf(uid(n%benchKeys)), uint64(n+1))); err != nil {
			b.Fatal(err)
		}
		<-received
	}
}

// BenchmarkStart measures how long a reconciler needs until all 64 consumers are consumed: newly created, or existing.
func BenchmarkStart(b *testing.B) {
	for range b.N {
		bus := connect(b, serve(b))
		for _, what := range []string{"new-ms", "found-ms"} {
			began := time.Now()
			e := listen(b, bus, allPartitions(), nil)
			until(b, "all partitions are pulled", func() bool { return pulls(b, bus) == 2*events.Partitions })
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000, what)
			e.end(b)
			until(b, "no partition is pulled", func() bool { return pulls(b, bus) == 0 })
		}
	}
}

// consumers counts those of both streams. It returns -1 if a server did not answer, as while a leader is elected.
func consumers(t testing.TB, b *Bus) int {
	n := 0
	for _, name := range []string{b.names.facts(), b.names.timers()} {
		s, err := b.js.Stream(t.Context(), name)
		if err != nil {
			return -1
		}
		n += s.CachedInfo().State.Consumers
	}
	return n
}

// pulls counts the consumers with a waiting pull request, and returns -1 as consumers does.
func pulls(t testing.TB, b *Bus) int {
	n := 0
	for _, name := range []string{b.names.facts(), b.names.timers()} {
		s, err := b.js.Stream(t.Context(), name)
		if err != nil {
			return -1
		}
		for c := range s.ListConsumers(t.Context()).Info() {
			if c.NumWaiting > 0 {
				n++
			}
		}
	}
	return n
}

// BenchmarkAnnounce measures a turn's announcements at once, over and over, each confirmed; then one subscriber reads them all.
func BenchmarkAnnounce(b *testing.B) {
	s := serve(b)
	bus := connect(b, s)
	b.SetParallelism(32)
	var next sync.Mutex
	n := 0
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			next.Lock()
			n++
			e := tick("shop", "nightly", n)
			next.Unlock()
			if err := bus.Announce(b.Context(), e); err != nil {
				b.Error(err)
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "announced/s")
	c, err := subscriber(b, s).OrderedConsumer(b.Context(), "jobstream_test_events", jetstream.OrderedConsumerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	all, err := c.Messages()
	if err != nil {
		b.Fatal(err)
	}
	defer all.Stop()
	for got := range b.N {
		if _, err := all.Next(jetstream.NextMaxWait(soon)); err != nil {
			b.Fatalf("event %d of %d: %v", got, b.N, err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "replayed/s")
}
