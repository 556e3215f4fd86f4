package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// evictedEvery is how often one bus checks whether facts were evicted before they were delivered: one request for all consumers,
// about something that takes hours without a reconciler.
const evictedEvery = time.Minute

// missedFacts is the mark, in its metadata, of a consumer that was created too late for facts that the stream has dropped.
const missedFacts = "jobstream_missed_facts"

// evicted finds facts that the bounded stream dropped before any reconciler received them: no reconciler ran for longer than the
// stream remembers. It reports whether a consumer is behind the first message now, and declares a loss once none is any more: a
// list that is published while no reconciler listens would only evict more facts.
//
//	stream                        [first ......... last]
//	consumer   delivered ...gap...
//
// A partition that was idle for that long looks the same for the moment that the delivery of its next fact takes; the price is
// one list.
//
// The consumers of a server that stands alone are gone when it restarts (floor.go). Until a reconciler creates them again, no
// consumer tells anything. One that is created behind the first message carries a mark, which counts once.
func (t *topology) evicted(ctx context.Context, was bool) (behind bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	s, err := t.bus.js.Stream(ctx, t.bus.names.facts())
	if err != nil {
		return was
	}
	first := s.CachedInfo().State.FirstSeq
	l := s.ListConsumers(ctx)
	none, missed := true, false
	for c := range l.Info() {
		none = false
		if c.NumPending > 0 && c.Delivered.Stream+1 < first {
			behind = true
		}
		missed = t.missedFacts(c) || missed
	}
	if l.Err() != nil || none {
		return was || behind
	}
	if behind && !was {
		t.bus.log.Warn("facts were evicted before they were delivered: are the reconcilers running?", "stream", t.bus.names.facts())
	}
	if was && !behind || missed {
		t.lose()
	}
	return behind
}

// missedFacts reports whether the consumer has the mark, once.
func (t *topology) missedFacts(c *jetstream.ConsumerInfo) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.Config.Metadata[missedFacts] == "" || t.missed[c.Name].Equal(c.Created) {
		return false
	}
	t.missed[c.Name] = c.Created
	return true
}
