package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// purgeInterval is how long acknowledged timers may stay in the stream. They are few and small; each purge costs two requests for
// every partition that has received some.
const purgeInterval = 15 * time.Second

// startPurging removes the partition's fired timers that have been acknowledged, so that the stream of timers, in which nothing
// expires, holds only timers that are still to come. Every message below the consumer's floor is acknowledged, no matter by which
// process, so the next process makes up for a purge that one has missed. It returns a function that stops the purging.
func (s *subscription) startPurging(ctx context.Context, c jetstream.Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var floor uint64
		seen := ^uint64(0) // the first purge makes up for earlier processes
		tick := time.NewTicker(purgeInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n := s.delivered.Load(); n != seen && s.purgeAcked(ctx, c, &floor) {
				seen = n
			}
		}
	}()
	return func() { cancel(); <-done }
}

// purgeAcked removes what lies below the consumer's floor, and reports whether no received message remains.
func (s *subscription) purgeAcked(ctx context.Context, c jetstream.Consumer, floor *uint64) bool {
	info, err := c.Info(ctx)
	if err != nil {
		return false
	}
	clean := info.NumAckPending == 0
	if info.AckFloor.Stream <= *floor {
		return clean
	}
	stream, err := s.bus.js.Stream(ctx, s.stream)
	if err != nil {
		return false
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(s.config.FilterSubject), jetstream.WithPurgeSequence(info.AckFloor.Stream+1)); err != nil {
		s.bus.refused(s.stream, err)
		s.bus.throttled.warn("acknowledged timers are not purged", "consumer", s.config.Durable, "err", err)
		return false
	}
	*floor = info.AckFloor.Stream
	return clean
}
