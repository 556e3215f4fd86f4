package bus

import (
	"context"
	"time"
)

// evictedEvery is how often one bus checks whether facts were evicted before they were delivered: one request for all consumers,
// about something that takes hours without a reconciler.
const evictedEvery = time.Minute

// evicted finds facts that the bounded stream dropped before any reconciler received them: no reconciler ran for longer than the
// stream remembers. It reports whether a consumer is behind the first message now, and declares a loss once none is any more: a
// list that is published while no reconciler listens would only evict more facts.
//
//	stream                        [first ......... last]
//	consumer   delivered ...gap...
//
// A partition that was idle for that long looks the same for the moment that the delivery of its next fact takes; the price is
// one list.
func (t *topology) evicted(ctx context.Context, was bool) (behind bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	s, err := t.bus.js.Stream(ctx, t.bus.names.facts())
	if err != nil {
		return was
	}
	first := s.CachedInfo().State.FirstSeq
	l := s.ListConsumers(ctx)
	for c := range l.Info() {
		if c.NumPending > 0 && c.Delivered.Stream+1 < first {
			behind = true
		}
	}
	if l.Err() != nil {
		return was || behind
	}
	if behind && !was {
		t.bus.log.Warn("facts were evicted before they were delivered: are the reconcilers running?", "stream", t.bus.names.facts())
	}
	if was && !behind {
		t.lose()
	}
	return behind
}
