// Command subscriber writes a line of JSON for each public event of jobstream, and misses none: it may be killed, cut off or away for
// as long as the stream keeps events. docs/events.md is the contract that it relies on.
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
	name   = flag.String("name", "example", "of the durable consumer: where this program has got to is kept under it, on the server")
	prefix = flag.String("api-prefix", jetstream.DefaultAPIPrefix, "of JetStream's API: JOBSTREAM.API for a user of deploy/nats/accounts.conf, who may not make a consumer: it must be there")
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
	return nc.FlushTimeout(2 * time.Second) // the last acknowledgements
}

// read works until something fails. A consumer that stands goes on where it was; one that was lost with its stream is made anew
// and begins at the oldest event that there is.
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
				break // what is not acknowledged comes again
			}
			if err := work(m, out); err != nil {
				return err
			}
			_ = m.Ack() // only now: who dies before, or whose word is lost, does the work again
		}
		if err := batch.Error(); err != nil {
			return err
		}
	}
	return nil
}

// consumer is the durable one: ours to make, unless the operator has made it.
func consumer(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	if *prefix != jetstream.DefaultAPIPrefix {
		return js.Consumer(ctx, *stream, *name)
	}
	return js.CreateOrUpdateConsumer(ctx, *stream, jetstream.ConsumerConfig{Durable: *name, FilterSubject: *filter,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Second})
}

// work is where yours goes. The same event may come twice: whoever must not do the work twice notes (source, id) down with it. A
// message that is no event would be none the next time, either.
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
