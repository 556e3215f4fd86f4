package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

// way is one way to read.
type way struct {
	name string
	// consumer creates a new consumer.
	consumer func(context.Context, jetstream.JetStream) (jetstream.Consumer, error)
	// ack acknowledges the n-th event.
	ack func(m jetstream.Msg, n, most int) error
	// window is how many events the client requests at a time.
	window int
}

// ackEvery is the number of events for one acknowledgement with AckAll.
const ackEvery = 100

// ways begin with the one that docs/events.md advises.
var ways = []way{
	{"durable, explicit acknowledgement of each", durable(jetstream.AckExplicitPolicy), func(m jetstream.Msg, _, _ int) error { return m.Ack() }, 500},
	{fmt.Sprintf("durable, one acknowledgement for %d (AckAll)", ackEvery), durable(jetstream.AckAllPolicy), func(m jetstream.Msg, n, most int) error {
		if n%ackEvery == 0 || n == most {
			return m.Ack()
		}
		return nil
	}, 500},
	{"ordered, without acknowledgement", func(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
		return js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	}, func(jetstream.Msg, int, int) error { return nil }, 500},
}

func durable(policy jetstream.AckPolicy) func(context.Context, jetstream.JetStream) (jetstream.Consumer, error) {
	return func(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
		return js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{Durable: fmt.Sprint("replay-", time.Now().UnixNano()), AckPolicy: policy,
			DeliverPolicy: jetstream.DeliverAllPolicy, FilterSubject: "jobstream.events." + clusterName + ".*.job.>", MaxAckPending: 10_000})
	}
}

// measure reads and decodes all events and returns how long it took, from the first request until the server has all
// acknowledgements. Each event must come once.
func (w way) measure(ctx context.Context, url string, most int) (time.Duration, error) {
	js, closed, err := connect(url)
	if err != nil {
		return 0, err
	}
	defer closed()
	began := time.Now()
	c, err := w.consumer(ctx, js)
	if err != nil {
		return 0, err
	}
	all, err := c.Messages(jetstream.PullMaxMessages(w.window))
	if err != nil {
		return 0, err
	}
	defer all.Stop()
	seen := make(map[string]bool, most)
	for n := 1; n <= most; n++ {
		m, err := all.Next()
		if err != nil {
			return 0, fmt.Errorf("after %d events: %w", n-1, err)
		}
		e, err := events.DecodePublic(m.Data())
		if err != nil {
			return 0, err
		}
		seen[events.PublicID(e)] = true
		if err := w.ack(m, n, most); err != nil {
			return 0, err
		}
	}
	if err := settled(ctx, js, c.CachedInfo()); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if len(seen) != most {
		return 0, fmt.Errorf("%d of %d events have come, the others twice", len(seen), most)
	}
	return took, nil
}

// settled waits until nothing is left to acknowledge, and removes the consumer.
func settled(ctx context.Context, js jetstream.JetStream, was *jetstream.ConsumerInfo) error {
	if was.Config.Durable == "" {
		return nil // without acknowledgement; the server removes it
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := js.Consumer(ctx, stream, was.Name)
		if err != nil {
			return err
		}
		if i := c.CachedInfo(); i.NumAckPending == 0 && i.NumPending == 0 {
			return js.DeleteConsumer(ctx, stream, was.Name)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func connect(url string) (jetstream.JetStream, func(), error) {
	nc, err := nats.Connect(url, nats.Name("bench-replay"))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return js, nc.Close, nil
}
