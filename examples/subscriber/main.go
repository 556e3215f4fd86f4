// Command subscriber prints a line of JSON for each public event of jobstream, and misses none: it may be killed, disconnected or
// stopped for as long as the stream keeps events. docs/events.md is the contract that it relies on.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
)

const stdout = "/dev/stdout"

var (
	url    = flag.String("url", nats.DefaultURL, "the NATS server")
	stream = flag.String("stream", "jobstream_default_events", "jobstream_<cluster>_events")
	filter = flag.String("filter", "jobstream.events.*.*.job.>", "which events: see docs/events.md")
	name   = flag.String("name", "example", "of the durable consumer, under which the server keeps this program's position")
	prefix = flag.String("api-prefix", jetstream.DefaultAPIPrefix, "of JetStream's API: JOBSTREAM.API for a user of deploy/nats/accounts.conf, who may not create a consumer: it must exist")
	file   = flag.String("file", stdout, "where the lines go; a file is synced before an event is acknowledged")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "subscriber:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	out, err := os.OpenFile(*file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	nc, err := nats.Connect(*url, nats.Name(*name), nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.NewWithAPIPrefix(nc, *prefix)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := read(ctx, js, out); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "subscriber: trying again:", err)
			pause, cancel := context.WithTimeout(ctx, time.Second)
			<-pause.Done()
			cancel()
		}
	}
	return nc.FlushTimeout(2 * time.Second) // sends the last acknowledgements
}

// read processes events until something fails. An existing consumer continues where it was; one that was lost with its stream is
// created again, from the oldest stored event.
func read(ctx context.Context, js jetstream.JetStream, out *os.File) error {
	c, err := consumer(ctx, js)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		batch, err := c.Fetch(100, jetstream.FetchMaxWait(5*time.Second), jetstream.FetchHeartbeat(time.Second))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			if ctx.Err() != nil {
				break // what is not acknowledged is redelivered
			}
			if err := work(m, out); err != nil {
				return err
			}
			_ = m.Ack() // only now: after a crash, or a lost acknowledgement, the work is repeated
		}
		if err := batch.Error(); err != nil {
			return err
		}
	}
	return nil
}

// consumer returns the durable consumer. It creates it, unless the operator has to.
func consumer(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	if *prefix != jetstream.DefaultAPIPrefix {
		return js.Consumer(ctx, *stream, *name)
	}
	return js.CreateOrUpdateConsumer(ctx, *stream, jetstream.ConsumerConfig{Durable: *name, FilterSubject: *filter,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Second})
}

// work is the place for your work. The same event may come twice: if the work must not be repeated, record (source, id) along
// with it. A message that is not an event would not be one after a redelivery either.
func work(m jetstream.Msg, out *os.File) error {
	event, err := cloudevent.Decode(m.Headers(), m.Data()) // in either mode
	if err != nil {
		fmt.Fprintln(os.Stderr, "subscriber: left out:", m.Subject(), err)
		return nil
	}
	line, err := json.Marshal(event)
	if err != nil {
		return err
	}
	if _, err := out.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := out.Sync(); err != nil && *file != stdout {
		return err
	}
	return nil
}
