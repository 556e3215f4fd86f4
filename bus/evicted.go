package bus

import (
	"context"
	"time"
)

// evictedEvery is how often somebody asks whether facts were evicted before they were delivered: one question for all
// consumers, about something that takes hours of absence.
const evictedEvery = time.Minute

// evicted finds facts that fell off the bounded stream before any reconciler had them: those were away for longer than
// the stream remembers. It answers whether a consumer is behind the first message now, and calls it a loss when none is
// any more: a list that is published while nobody listens would only evict more.
//
//	stream                        [first ......... last]
//	consumer   delivered ...gap...
//
// A partition that has been idle for that long looks the same for the moment that its next fact takes; the price is one list.
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
