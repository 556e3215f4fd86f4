package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	eventsStream = "jobstream_" + harness.ClusterName + "_events"
	factsStream  = "jobstream_" + harness.ClusterName + "_facts"
	// durable is the checker's consumer. It is deleted with the stream, and then created again, from the beginning.
	durable = "chaos-checker"
	// fetchBatch, fetchWait and askFor suit a reader without other work.
	fetchBatch = 500
	fetchWait  = time.Second
	askFor     = 5 * time.Second
)

// told is a public event as any subscriber reads it.
type told struct {
	Source, ID, Type string
	Data             json.RawMessage
}

// identity makes two events one.
type identity struct{ source, id string }

// recorder is a subscriber that keeps every event, by source and id.
type recorder struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	file io.Writer // every message, as it arrived

	mu       sync.Mutex
	events   map[identity]told
	received int
	deafs    int // how often events may have been deleted before they were received
	wrong    []string
}

func record(url string, file io.Writer) (*recorder, error) {
	nc, err := nats.Connect(url, nats.Name("chaos-checker"), nats.MaxReconnects(-1), nats.ReconnectWait(200*time.Millisecond),
		nats.PingInterval(2*time.Second), nats.MaxPingsOutstanding(2))
	if err != nil {
		return nil, err
	}
	r := &recorder{nc: nc, file: file, events: map[identity]told{}}
	if r.js, err = jetstream.New(nc); err != nil {
		nc.Close()
		return nil, err
	}
	return r, nil
}

// run listens until ctx ends, whatever happens to the bus.
func (r *recorder) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.listen(ctx); err != nil {
			pass(ctx, fetchWait/4)
		}
	}
	r.nc.Close()
}

// listen reads until something fails.
func (r *recorder) listen(ctx context.Context) error {
	c, err := r.consumer(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		batch, err := c.Fetch(fetchBatch, jetstream.FetchMaxWait(fetchWait))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			r.add(m.Data())
			if err := m.Ack(); err != nil {
				return err
			}
		}
		if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
			return err
		}
		if batch.Error() != nil || r.nc.Status() != nats.CONNECTED {
			return errors.New("nothing is received")
		}
	}
	return nil
}

func (r *recorder) consumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	return r.js.CreateOrUpdateConsumer(ctx, eventsStream, jetstream.ConsumerConfig{
		Durable: durable, DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 5 * time.Second,
		MaxAckPending: 2 * fetchBatch,
	})
}

// add keeps an event. A repeated event must be identical.
func (r *recorder) add(data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received++
	if _, err := fmt.Fprintf(r.file, "%s\n", data); err != nil {
		r.wrong = append(r.wrong, err.Error())
	}
	var e told
	if err := json.Unmarshal(data, &e); err != nil || e.Source == "" || e.ID == "" {
		r.wrong = append(r.wrong, fmt.Sprintf("an event that cannot be decoded (%v): %s", err, data))
		return
	}
	key := identity{e.Source, e.ID}
	if old, again := r.events[key]; again && !bytes.Equal(old.Data, e.Data) {
		r.wrong = append(r.wrong, fmt.Sprintf("%s %s has the data %s, and had before %s", e.Source, e.ID, e.Data, old.Data))
		return
	}
	r.events[key] = e
}

// all returns the received events, each once.
func (r *recorder) all() (events []told, wrong []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		events = append(events, e)
	}
	return events, append([]string{}, r.wrong...)
}

// catchUp waits until everything in the stream has been received.
func (r *recorder) catchUp(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return harness.Poll(ctx, func(ctx context.Context) error {
		c, err := r.js.Consumer(ctx, eventsStream, durable)
		if err != nil {
			return err
		}
		if i := c.CachedInfo(); i.NumPending > 0 || i.NumAckPending > 0 {
			return fmt.Errorf("%d events are not received yet", i.NumPending+uint64(i.NumAckPending))
		}
		return nil
	}) == nil
}

// deaf records that events may have been deleted before they were received.
func (r *recorder) deaf() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deafs++
}

func (r *recorder) isDeaf() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.deafs > 0
}

// leader returns the server that leads the stream of facts.
func (r *recorder) leader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	s, err := r.js.Stream(ctx, factsStream)
	if err != nil {
		return "", err
	}
	if c := s.CachedInfo().Cluster; c != nil {
		return c.Leader, nil
	}
	return "", errors.New("the stream is not replicated")
}
