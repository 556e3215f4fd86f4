package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// sweepAfter is how long heard rings may lie about. They are few and small; each sweep is two requests for a lane that
// has heard any.
const sweepAfter = 15 * time.Second

// sweepEvery removes the rings of the lane that have been acknowledged, so that the stream of timers, in which nothing
// expires, holds what is to come and not what has been. What lies below the consumer's floor has been acknowledged,
// whoever did it; so a sweep that was missed by one process is made up for by the next. It returns what stops it.
func (l *lane) sweepEvery(ctx context.Context, c jetstream.Consumer) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var floor uint64
		seen := ^uint64(0) // the first sweep makes up for those before us
		tick := time.NewTicker(sweepAfter)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n := l.heard.Load(); n != seen && l.sweep(ctx, c, &floor) {
				seen = n
			}
		}
	}()
	return func() { cancel(); <-done }
}

// sweep removes what lies below the consumer's floor, and says whether nothing that was heard remains.
func (l *lane) sweep(ctx context.Context, c jetstream.Consumer, floor *uint64) bool {
	info, err := c.Info(ctx)
	if err != nil {
		return false
	}
	clean := info.NumAckPending == 0
	if info.AckFloor.Stream <= *floor {
		return clean
	}
	s, err := l.bus.js.Stream(ctx, l.stream)
	if err != nil {
		return false
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(l.config.FilterSubject), jetstream.WithPurgeSequence(info.AckFloor.Stream+1)); err != nil {
		l.bus.refused(l.stream, err)
		l.bus.gripes.warn("heard timers are not swept", "consumer", l.config.Durable, "err", err)
		return false
	}
	*floor = info.AckFloor.Stream
	return clean
}
