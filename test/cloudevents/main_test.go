package cloudevents

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	cejetstream "github.com/cloudevents/sdk-go/protocol/nats_jetstream/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/bus/embedded"
)

const (
	soon   = 30 * time.Second
	stream = "interop" // the SDK wants subjects that begin with the name of the stream
)

// place is a server with a stream, and a connection to it.
type place struct {
	url string
	nc  *nats.Conn
	js  jetstream.JetStream
}

// open starts a server of the test's own.
func open(t *testing.T) place {
	t.Helper()
	s, err := embedded.Start(embedded.Config{StoreDir: t.TempDir(), Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	nc, err := nats.Connect(s.URL(), nats.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: stream, Subjects: []string{stream + ".>"}}); err != nil {
		t.Fatal(err)
	}
	return place{s.URL(), nc, js}
}

// announcer is a jobstream at the server.
func (p place) announcer(t *testing.T, mode cloudevent.Mode) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: p.url, Cluster: "test", EventMode: mode, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// sendTheirs has the SDK send the event.
func (p place) sendTheirs(t *testing.T, e event.Event, mode cloudevent.Mode) {
	t.Helper()
	sender, err := cejetstream.NewSenderFromConn(p.nc, stream, stream+".theirs", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := binding.WithForceStructured(t.Context())
	if mode == cloudevent.Binary {
		ctx = binding.WithForceBinary(t.Context())
	}
	if err := sender.Send(ctx, (*binding.EventMessage)(&e)); err != nil {
		t.Fatal(err)
	}
}

// sendAsTheBus puts the event into the stream as the bus would.
func (p place) sendAsTheBus(t *testing.T, e event.Event, mode cloudevent.Mode) {
	t.Helper()
	header, data, err := cloudevent.Encode(e, mode)
	if err != nil {
		t.Fatal(err)
	}
	p.send(t, header, data)
}

func (p place) send(t *testing.T, header nats.Header, data []byte) {
	t.Helper()
	if _, err := p.js.PublishMsg(t.Context(), &nats.Msg{Subject: stream + ".ours", Header: header, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// last is the newest message of the stream.
func (p place) last(t *testing.T) *jetstream.RawStreamMsg {
	t.Helper()
	s, err := p.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetMsg(t.Context(), s.CachedInfo().State.LastSeq)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readTheirs has the SDK read the first n messages of the stream that match.
func (p place) readTheirs(t *testing.T, of, filter string, n int) []binding.Message {
	t.Helper()
	consumer, err := cejetstream.NewConsumerFromConn(p.nc, of, filter, nil, []nats.SubOpt{nats.BindStream(of), nats.DeliverAll()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), soon)
	ended := make(chan error, 1)
	go func() { ended <- consumer.OpenInbound(ctx) }()
	var out []binding.Message
	for range n {
		m, err := consumer.Receive(ctx)
		if err != nil {
			t.Fatalf("%d of %d messages: %v", len(out), n, err)
		}
		out = append(out, m)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return out
}

// lastOfTheirs is how the SDK reads the newest message of the stream.
func (p place) lastOfTheirs(t *testing.T) (*event.Event, error) {
	t.Helper()
	s, err := p.js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	n := int(s.CachedInfo().State.Msgs)
	return binding.ToEvent(t.Context(), p.readTheirs(t, stream, stream+".>", n)[n-1])
}
