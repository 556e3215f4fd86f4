package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

// subscribe receives every JobFinish and every verdict on a nominal time, in the way that docs/events.md describes: with a
// durable consumer of the public stream. stop ends it.
func subscribe(ctx context.Context, url, cluster string, log *slog.Logger) (received <-chan events.Public, stop func(), err error) {
	nc, err := nats.Connect(url, nats.Name("demo"), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			nc.Close()
		}
	}()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, nil, err
	}
	c, err := js.CreateOrUpdateConsumer(ctx, "jobstream_"+cluster+"_events", jetstream.ConsumerConfig{
		Durable: "demo", DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubjects: []string{"jobstream.events." + cluster + ".*.job.finish.*.*", "jobstream.events." + cluster + ".*.schedule.tick.*.*"},
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan events.Public, 100)
	reading, err := c.Consume(func(m jetstream.Msg) {
		event, err := cloudevent.Decode(m.Headers(), m.Data())
		var public events.Public
		if err == nil {
			public, err = events.FromCloudEvent(event)
		}
		if err != nil {
			log.Warn("event cannot be read", "subject", m.Subject(), "error", err)
			_ = m.Term() // it would be unreadable the next time, too
			return
		}
		select {
		case out <- public:
			_ = m.Ack() // without an ack it comes again, and counts once
		case <-ctx.Done():
		}
	})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return out, func() { cancel(); reading.Stop(); <-reading.Closed(); nc.Close() }, nil
}
