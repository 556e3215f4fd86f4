package harness

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

// Subscriber does what docs/events.md advises: a durable consumer with explicit acknowledgement, which is created again, from
// the beginning, if the stream has lost it.
type Subscriber struct {
	mu       sync.Mutex
	received []Received
}

// Received is one message of the events stream.
type Received struct {
	// Key is source and id.
	Key     [2]string
	Subject string
	Event   events.Public
}

// Subscribe receives the events of one namespace until the test ends.
func (p *Space) Subscribe() *Subscriber {
	p.Helper()
	nc, err := nats.Connect(p.NATS.URL, nats.Name("subscriber"), nats.Timeout(readyTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		p.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		p.Fatal(err)
	}
	s := &Subscriber{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.receive(ctx, p, js)
		}
	}()
	p.Cleanup(func() {
		cancel()
		<-done
		nc.Close()
	})
	return s
}

// receive takes a few messages. It is called again after every error.
func (s *Subscriber) receive(ctx context.Context, p *Space, js jetstream.JetStream) {
	asked, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := js.CreateOrUpdateConsumer(asked, "jobstream_"+ClusterName+"_events", jetstream.ConsumerConfig{Durable: p.Namespace,
		AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "jobstream.events." + ClusterName + "." + p.Namespace + ".>"})
	if err != nil {
		<-asked.Done() // no server answered: not too often
		return
	}
	batch, err := c.Fetch(100, jetstream.FetchMaxWait(time.Second))
	if err != nil {
		return
	}
	for m := range batch.Messages() {
		e, key, err := read(m.Data())
		if err != nil {
			p.Errorf("an event that cannot be decoded: %v: %s", err, m.Data())
			continue
		}
		s.mu.Lock()
		s.received = append(s.received, Received{Key: key, Subject: m.Subject(), Event: e})
		s.mu.Unlock()
		_ = m.Ack() // otherwise it is delivered again
	}
}

// Received returns all messages so far, in their order, including repeated ones.
func (s *Subscriber) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}
