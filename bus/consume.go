package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

const (
	// factsWindow is how many facts of one partition may be delivered and not yet acknowledged, over all reconcilers together:
	// the most that a turn can fold. At 1,500 facts a second of one Job it allows turns of 170 ms, and where 1,000 small Jobs are created at
	// once, half of it is enough for those of a partition. All 32 partitions with their
	// timers have at most 9,216 such messages, each of which needs an InProgress while an engine is stuck.
	factsWindow = 256
	// firedWindow is the same limit for fired timers, which are few and add no observation.
	firedWindow = 32
	// pullExpiry and pullHeartbeat make an idle partition cost one small message every five seconds, and let the client notice
	// within ten that the server has lost a consumer.
	pullExpiry    = 30 * time.Second
	pullHeartbeat = 5 * time.Second
	// pullBytes bounds one batch. Otherwise a few lists of huge Jobs would overflow the client's buffer of 64 MiB, which drops
	// them until they are delivered again.
	pullBytes = 16 << 20
	// atOnce is how many consumers are looked up or created at the same time; with three replicas each takes 60 ms.
	atOnce = 16
	// partitionRetry is the first pause before a partition that cannot be consumed is tried again; it doubles up to
	// partitionRetryAtMost.
	partitionRetry       = 100 * time.Millisecond
	partitionRetryAtMost = 2 * time.Second
)

// Consume delivers all facts and fired timers of the function in the given partitions (0 to 31), each at least once, and blocks
// until the context ends. It survives every loss of the server, the streams and the consumers. Each partition is delivered in the
// order of its stream, except for redeliveries. Consume calls deliver from several goroutines, and never after it has returned;
// deliver may block briefly and must return when the context has ended. Messages that are not delivered by then are given back to
// the server at once. The error is nil, or reports that a partition does not exist or that the bus is closed.
//
// Any number of processes may consume the same partition at the same time: they share its messages.
func (b *Bus) Consume(ctx context.Context, function string, partitions []int, deliver func(engine.Delivery)) error {
	for _, n := range partitions {
		if n < 0 || n >= events.Partitions {
			return fmt.Errorf("consume %s: partition %d does not exist: they go from 0 to %d", function, n, events.Partitions-1)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, n := range partitions {
		facts := &subscription{
			bus: b, function: function, deliver: deliver, stream: b.names.facts(),
			config: b.consumer(factsConsumer(function, n), b.names.factsPartition(function, n), factsWindow),
		}
		facts.floor = &floor{bus: b, stream: b.names.state(function), subject: b.names.floor(function, n)}
		fired := &subscription{
			bus: b, function: function, deliver: deliver, stream: b.names.timers(),
			config: b.consumer(firedConsumer(function, n), b.names.firedPartition(function, n), firedWindow),
		}
		all.Go(func() { facts.run(ctx) })
		all.Go(func() { fired.run(ctx) })
	}
	select {
	case <-ctx.Done():
		all.Wait()
		return nil
	case <-b.closed:
		cancel()
		all.Wait()
		return fmt.Errorf("consume %s: %w", function, errClosed)
	}
}

// consumer returns a durable consumer's configuration: the server remembers what was acknowledged while no reconciler runs.
// MaxDeliver is unlimited, because only the engine decides to give up on a fact (Quarantine), never a counter.
func (b *Bus) consumer(name, filter string, window int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       name,
		FilterSubject: filter,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       b.cfg.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: window,
	}
}

// subscription keeps one consumer of one stream alive.
type subscription struct {
	bus      *Bus
	function string
	deliver  func(engine.Delivery)
	stream   string
	config   jetstream.ConsumerConfig
	floor    *floor // of facts; nil for fired timers, which are deleted when they are acknowledged

	mu   sync.Mutex // held during deliver
	over bool       // nothing is delivered any more

	delivered atomic.Uint64 // messages delivered
}

// run consumes until the context ends; each round is the life of one consumer.
func (s *subscription) run(ctx context.Context) {
	pause := partitionRetry
	for ctx.Err() == nil {
		remade := s.bus.top.changed() // read before the consumer is looked up; otherwise a change in between would be missed
		c, err := s.ensure(ctx)
		if err == nil {
			pause = partitionRetry
			err = s.consume(ctx, c, remade)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.bus.top.suspect(err)
		s.bus.throttled.warn("partition is not consumed; trying again", "consumer", s.config.Durable, "err", err)
		select {
		case <-ctx.Done():
		case <-remade:
		case <-time.After(pause):
		}
		pause = min(2*pause, partitionRetryAtMost)
	}
}

// ensure looks the consumer up, and creates or updates it where needed. A lookup is cheap; a creation costs a round of consensus.
func (s *subscription) ensure(ctx context.Context) (jetstream.Consumer, error) {
	select {
	case s.bus.gate <- struct{}{}:
		defer func() { <-s.bus.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c, err := s.find(ctx)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		c, err = s.create(ctx)
	}
	if errors.Is(err, jetstream.ErrConsumerExists) { // another reconciler has just created it, with another beginning
		c, err = s.find(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", s.config.Durable, explain(err))
	}
	have := c.CachedInfo().Config
	if have.FilterSubject == s.config.FilterSubject && have.AckWait == s.config.AckWait && have.MaxAckPending == s.config.MaxAckPending {
		return c, nil
	}
	want := s.config // but for what cannot be changed: where it began, and how it is stored
	want.DeliverPolicy, want.OptStartSeq, want.OptStartTime = have.DeliverPolicy, have.OptStartSeq, have.OptStartTime
	want.MemoryStorage, want.Metadata = have.MemoryStorage, have.Metadata
	err = s.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		c, err = s.bus.js.UpdateConsumer(ctx, s.stream, want)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("bring consumer %s in line: %w", s.config.Durable, explain(err))
	}
	return c, nil
}

func (s *subscription) find(ctx context.Context) (c jetstream.Consumer, err error) {
	err = s.bus.ask(ctx, askTimeout, func(ctx context.Context) (err error) {
		c, err = s.bus.js.Consumer(ctx, s.stream, s.config.Durable)
		return err
	})
	return c, err
}

// create creates the consumer: in memory where the server stands alone, and then it begins at the floor.
func (s *subscription) create(ctx context.Context) (c jetstream.Consumer, err error) {
	want := s.config
	want.MemoryStorage = s.bus.standsAlone()
	if want.MemoryStorage && s.floor != nil {
		at, err := s.floor.load(ctx)
		if err != nil {
			return nil, err
		}
		if at.sequence > 0 {
			want.DeliverPolicy, want.OptStartSeq = jetstream.DeliverByStartSequencePolicy, at.sequence
		}
		if at.missed {
			want.Metadata = map[string]string{missedFacts: "true"}
		}
	}
	err = s.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		c, err = s.bus.js.CreateConsumer(ctx, s.stream, want)
		return err
	})
	return c, err
}

// consume pulls until the context ends, a stream is recreated, or an error makes the consumer doubtful.
func (s *subscription) consume(ctx context.Context, c jetstream.Consumer, remade <-chan struct{}) error {
	doubt := make(chan error, 1)
	cc, err := c.Consume(func(m jetstream.Msg) { s.hand(ctx, m) },
		jetstream.PullMaxMessagesWithBytesLimit(s.config.MaxAckPending, int(max(pullBytes, 2*s.bus.nc.MaxPayload()))),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if !harmless(err) {
				select {
				case doubt <- err:
				default:
				}
			}
		}))
	if err != nil {
		return fmt.Errorf("consume %s: %w", s.config.Durable, err)
	}
	switch {
	case s.floor == nil:
		defer s.startUpkeep(ctx, c, purgeInterval, s.purge)()
	case s.bus.standsAlone():
		defer s.startUpkeep(ctx, c, floorInterval, s.floor.save)()
	}
	select {
	case <-ctx.Done():
	case <-remade:
	case err = <-doubt:
		err = fmt.Errorf("consume %s: %w", s.config.Durable, err)
	}
	s.end(ctx, cc)
	return err
}

// end stops pulling. Messages that were fetched are still delivered, or given back where the context has ended.
func (s *subscription) end(ctx context.Context, cc jetstream.ConsumeContext) {
	cc.Drain()
	select {
	case <-cc.Closed():
	case <-time.After(closeTimeout): // the connection is down
		cc.Stop()
	}
	if ctx.Err() != nil {
		s.mu.Lock() // waits for the running delivery
		s.over = true
		s.mu.Unlock()
	}
}

// harmless reports whether nats.go continues by itself after the error.
func harmless(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerLeadershipChanged) || errors.Is(err, jetstream.ErrServerShutdown) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrMaxBytesExceeded) || errors.Is(err, jetstream.ErrNoMessages)
}

// hand delivers a message, or quarantines one that this program cannot read.
func (s *subscription) hand(ctx context.Context, m jetstream.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || ctx.Err() != nil {
		_ = m.Nak() // another process may have it at once
		return
	}
	f, err := s.read(m)
	d := &delivery{bus: s.bus, function: s.function, msg: m, fact: f}
	if unknown := (events.UnknownFact{}); errors.As(err, &unknown) {
		d.passBy(ctx, unknown)
		return
	}
	if err != nil {
		d.refuse(err)
		return
	}
	s.delivered.Add(1)
	s.deliver(d)
}

// read decodes the message and checks that its contents match its subject, since the subject chose the partition. Its error wraps
// an events.UnknownFact only if the type is all that is wrong.
func (s *subscription) read(m jetstream.Msg) (events.Fact, error) {
	f, err := events.Decode(m.Data())
	unknown := events.UnknownFact{}
	key, cluster := f.Key, f.Cluster
	switch {
	case errors.As(err, &unknown):
		key, cluster = unknown.Key, unknown.Cluster
	case err != nil:
		return f, err
	}
	tokens, ok := keyTokens(m.Subject())
	if !ok || tokens != key.Tokens() {
		return f, fmt.Errorf("fact about %s came on subject %s, which is not its own", key, m.Subject())
	}
	if cluster != s.bus.cfg.Cluster {
		return f, fmt.Errorf("fact about %s is about cluster %q, not %q", key, cluster, s.bus.cfg.Cluster)
	}
	return f, err
}
