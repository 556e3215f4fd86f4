package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// purgeInterval is how long acknowledged timers may lie about. They are few and small; each purge is two requests for a partition that
// has heard any.
const purgeInterval = 15 * time.Second

// startPurging removes the fired timers of the partition that have been acknowledged, so that the stream of timers, in which nothing
// expires, holds what is to come and not what has been. What lies below the consumer's floor has been acknowledged,
// whoever did it; so a purge that was missed by one process is made up for by the next. It returns what stops it.
func (s *subscription) startPurging(ctx context.Context, c jetstream.Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var floor uint64
		seen := ^uint64(0) // the first purge makes up for those before us
		tick := time.NewTicker(purgeInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n := s.heard.Load(); n != seen && s.purgeAcked(ctx, c, &floor) {
				seen = n
			}
		}
	}()
	return func() { cancel(); <-done }
}

// purgeAcked removes what lies below the consumer's floor, and says whether nothing that was heard remains.
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
