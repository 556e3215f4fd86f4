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
	// factsWindow is how many facts of one partition may be delivered and not acknowledged, over all reconcilers together:
	// what a turn can fold. At 1,500 facts a second of one Job it allows turns of 85 ms. All 32 partitions together, with
	// their timers, hold at most 5,120 messages, which is also how many want an InProgress while an engine is stuck.
	factsWindow = 128
	// firedWindow is the same for fired timers: there are few, and they fold to nothing.
	firedWindow = 32
	// pullExpiry and pullHeartbeat make an idle partition cost one small message every five seconds, and let a partition whose
	// consumer vanished without a word notice within ten.
	pullExpiry    = 30 * time.Second
	pullHeartbeat = 5 * time.Second
	// pullBytes bounds one batch, so that a few lists of huge Jobs do not overflow the client's buffer of 64 MiB, which
	// would drop them until they are delivered again.
	pullBytes = 16 << 20
	// atOnce is how many consumers are looked up or made at the same time; with three replicas each takes 60 ms.
	atOnce = 16
	// partitionRetry is the first pause of a partition that cannot be consumed; it doubles up to partitionRetryAtMost.
	partitionRetry       = 100 * time.Millisecond
	partitionRetryAtMost = 2 * time.Second
)

// Consume delivers all facts and fired timers of the function that lie in the given partitions (0 to 31), each at least once,
// and blocks until the context ends. It survives whatever happens to the server, the streams and the consumers. Each partition
// is delivered in the order of its stream, except for what is delivered again; deliver is called from several
// goroutines, may block briefly, must return when the context has ended, and is not called after Consume has returned.
// What has not been delivered by then is given back at once. The error is nil, or says that a partition does not exist or
// that the bus is closed.
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
		fired := &subscription{
			bus: b, function: function, deliver: deliver, stream: b.names.timers(), purges: true,
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

// consumer is a durable one: it remembers what was acknowledged while nobody is there. MaxDeliver is unlimited, because
// to give up on a fact is the engine's decision (Quarantine), never a counter's.
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

// subscription is one consumer of one stream, kept alive.
type subscription struct {
	bus      *Bus
	function string
	deliver  func(engine.Delivery)
	stream   string
	config   jetstream.ConsumerConfig
	purges   bool // remove what was acknowledged

	mu   sync.Mutex // held during deliver
	over bool       // no delivery any more

	heard atomic.Uint64 // messages handed over
}

// run consumes until the context ends; each round is one life of the consumer.
func (s *subscription) run(ctx context.Context) {
	pause := partitionRetry
	for ctx.Err() == nil {
		remade := s.bus.top.changed() // before the consumer is looked up, or a change in between would be missed
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

// ensure looks the consumer up, and makes it or brings it in line where that is needed. Asking is cheap; making one costs
// a round of consensus.
func (s *subscription) ensure(ctx context.Context) (jetstream.Consumer, error) {
	select {
	case s.bus.gate <- struct{}{}:
		defer func() { <-s.bus.gate }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var c jetstream.Consumer
	err := s.bus.ask(ctx, askTimeout, func(ctx context.Context) (err error) {
		c, err = s.bus.js.Consumer(ctx, s.stream, s.config.Durable)
		return err
	})
	switch {
	case err == nil:
		have := c.CachedInfo().Config
		if have.FilterSubject == s.config.FilterSubject && have.AckWait == s.config.AckWait && have.MaxAckPending == s.config.MaxAckPending {
			return c, nil
		}
	case !errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, fmt.Errorf("consumer %s: %w", s.config.Durable, err)
	}
	err = s.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		c, err = s.bus.js.CreateOrUpdateConsumer(ctx, s.stream, s.config)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make consumer %s: %w", s.config.Durable, explain(err))
	}
	return c, nil
}

// consume pulls until the context ends, the streams are made anew, or the consumer gives reason for doubt.
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
	stopPurging := func() {}
	if s.purges {
		stopPurging = s.startPurging(ctx, c)
	}
	defer stopPurging()
	select {
	case <-ctx.Done():
	case <-remade:
	case err = <-doubt:
		err = fmt.Errorf("consume %s: %w", s.config.Durable, err)
	}
	s.end(ctx, cc)
	return err
}

// end stops the pulling. What was fetched is still handed over, or given back where the context has ended.
func (s *subscription) end(ctx context.Context, cc jetstream.ConsumeContext) {
	cc.Drain()
	select {
	case <-cc.Closed():
	case <-time.After(closeTimeout): // the connection is down
		cc.Stop()
	}
	if ctx.Err() != nil {
		s.mu.Lock() // waits for the delivery that runs
		s.over = true
		s.mu.Unlock()
	}
}

// harmless are the errors after which nats.go goes on by itself.
func harmless(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerLeadershipChanged) || errors.Is(err, jetstream.ErrServerShutdown) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrMaxBytesExceeded) || errors.Is(err, jetstream.ErrNoMessages)
}

// hand makes a delivery of a message, or sets it aside where nobody can read it.
func (s *subscription) hand(ctx context.Context, m jetstream.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || ctx.Err() != nil {
		_ = m.Nak() // somebody else may have it at once
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
	s.heard.Add(1)
	s.deliver(d)
}

// read decodes the message and checks that it says what its subject says: the partition was chosen by the subject. Its error wraps
// an events.UnknownFact only where all is well but for the type.
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
