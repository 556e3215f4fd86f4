package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// purgeInterval is how long acknowledged timers may stay in the stream. They are few and small; each purge costs two requests for
// every partition that has received some.
const purgeInterval = 15 * time.Second

// purge removes the partition's fired timers that have been acknowledged, so that the stream of timers, in which nothing expires,
// holds only timers that are still to come.
func (s *subscription) purge(ctx context.Context, floor uint64) error {
	stream, err := s.bus.js.Stream(ctx, s.stream)
	if err != nil {
		return fmt.Errorf("purge fired timers: %w", err)
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(s.config.FilterSubject), jetstream.WithPurgeSequence(floor+1)); err != nil {
		s.bus.refused(s.stream, err)
		return fmt.Errorf("purge fired timers: %w", err)
	}
	return nil
}
