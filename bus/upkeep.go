package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// startUpkeep calls do, every so often, with the floor of the consumer: every message of the partition up to this sequence is
// acknowledged, no matter by which process, so the next process makes up for a call that one has missed. An idle partition costs
// nothing. It returns a function that stops it.
func (s *subscription) startUpkeep(ctx context.Context, c jetstream.Consumer, every time.Duration, do func(context.Context, uint64) error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var floor uint64
		seen := ^uint64(0) // the first call makes up for earlier processes
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if n := s.delivered.Load(); n != seen && s.upkeep(ctx, c, &floor, do) {
				seen = n
			}
		}
	}()
	return func() { cancel(); <-done }
}

// upkeep calls do if the floor has risen, and reports whether no received message remains.
func (s *subscription) upkeep(ctx context.Context, c jetstream.Consumer, floor *uint64, do func(context.Context, uint64) error) bool {
	info, err := c.Info(ctx)
	if err != nil {
		return false // consume meets the same error
	}
	clean := info.NumAckPending == 0
	if info.AckFloor.Stream <= *floor {
		return clean
	}
	if err := do(ctx, info.AckFloor.Stream); err != nil {
		if ctx.Err() == nil {
			s.bus.throttled.warn("what was acknowledged is not noted; trying again", "consumer", s.config.Durable, "err", err)
		}
		return false
	}
	*floor = info.AckFloor.Stream
	return clean
}
