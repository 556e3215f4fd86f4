// Command webhook posts each event of a consumer to a URL, at least once, as an HTTP CloudEvent in structured mode.
//
//	main.go      settings, and the workers
//	deliver.go   one event: the request, and the meaning of the response
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// workers is the number of concurrent requests.
const workers = 8

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		slog.Error("webhook ends", "err", err)
		os.Exit(1)
	}
}

// run forwards events until it is stopped, or cannot continue; after a restart it continues where it was.
func run(ctx context.Context) error {
	f, err := settings()
	if err != nil {
		return err
	}
	nc, err := nats.Connect(cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL), nats.Name("webhook"), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.NewWithAPIPrefix(nc, cmp.Or(os.Getenv("NATS_API_PREFIX"), jetstream.DefaultAPIPrefix))
	if err != nil {
		return err
	}
	stream, name := cmp.Or(os.Getenv("STREAM"), "jobstream_default_events"), cmp.Or(os.Getenv("CONSUMER"), "webhook")
	consumer, err := js.Consumer(ctx, stream, name)
	if err != nil {
		return fmt.Errorf("consumer %s of stream %s: %w: make it as the README says", name, stream, err)
	}
	c := consumer.CachedInfo().Config
	if c.AckPolicy != jetstream.AckExplicitPolicy || c.AckWait <= f.client.Timeout || c.MaxDeliver > 0 && c.MaxDeliver < f.tries {
		return fmt.Errorf("consumer %s has ack %s, wait %v and at most %d deliveries: it needs explicit acknowledgement, more than %v, and %d or no limit",
			name, c.AckPolicy, c.AckWait, c.MaxDeliver, f.client.Timeout, f.tries)
	}
	slog.Info("forwarding", "stream", stream, "consumer", name, "to", f.url.Redacted())
	failed := make(chan error, workers)
	var all sync.WaitGroup
	ctx, end := context.WithCancel(ctx)
	defer end()
	for range workers {
		all.Go(func() { failed <- f.work(ctx, consumer); end() })
	}
	all.Wait()
	return <-failed
}

// settings reads the environment.
func settings() (*forwarder, error) {
	to, err := url.Parse(os.Getenv("WEBHOOK_URL"))
	if err != nil || to.Host == "" {
		return nil, errors.New("WEBHOOK_URL is not the URL of a receiver: set it, such as https://example.com/events")
	}
	timeout, err := time.ParseDuration(cmp.Or(os.Getenv("WEBHOOK_TIMEOUT"), "10s"))
	if err != nil || timeout <= 0 {
		return nil, fmt.Errorf("WEBHOOK_TIMEOUT %q is not a time, such as 10s", os.Getenv("WEBHOOK_TIMEOUT"))
	}
	tries, err := strconv.Atoi(cmp.Or(os.Getenv("WEBHOOK_TRIES"), "20"))
	if err != nil || tries < 1 {
		return nil, fmt.Errorf("WEBHOOK_TRIES %q is not a number of 1 or more", os.Getenv("WEBHOOK_TRIES"))
	}
	client := &http.Client{Timeout: timeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // most redirects would turn the POST into a GET, and send the credentials elsewhere
	}}
	return &forwarder{url: to, authorization: os.Getenv("WEBHOOK_AUTHORIZATION"), tries: tries, client: client}, nil
}

// work processes one event after another. It fetches each only when it is free: an event that waited here would time out and be
// redelivered to another worker.
func (f *forwarder) work(ctx context.Context, consumer jetstream.Consumer) error {
	for ctx.Err() == nil {
		m, err := consumer.Next(jetstream.FetchContext(ctx))
		if err == nil {
			f.forward(ctx, m)
			continue
		}
		idle := errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrNoHeartbeat)
		if !idle && ctx.Err() == nil {
			return fmt.Errorf("fetch an event: %w", err)
		}
	}
	return nil
}
