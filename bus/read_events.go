package bus

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
)

const (
	// followEvery is how often a reader that follows the stream looks without having been woken: an event that is published while
	// the connection is lost does not wake it.
	followEvery = 5 * time.Second
	// followSoon is the first pause after a wake that came before the stream had stored the event; it doubles.
	followSoon = 20 * time.Millisecond
)

// Wanted selects public events.
type Wanted struct {
	// Namespace is that of the events' objects, "" for all.
	Namespace string
	// Kinds are parts of the subject, such as "job.finish"; none means all.
	Kinds []string
	// Since is the time from which stored events are read; zero means from the oldest.
	Since time.Time
	// Follow waits for more events once the stored ones are read, until the context ends.
	Follow bool
	// Away is called, if it is not nil, when a reader that follows cannot read, and with nil when it can again.
	Away func(error)
}

// StoredEvent is a public event as the stream keeps it.
type StoredEvent struct {
	// Subject is the message's.
	Subject string
	// Stored is when the server stored it.
	Stored time.Time
	// Text is the whole CloudEvent as JSON: in structured mode the message as it is, in binary mode what it says.
	Text []byte
	// CloudEvent is the event with its attributes, in either mode; Err explains why it could not be read.
	CloudEvent event.Event
	Err        error
}

// Events calls a function for each selected public event, in the order in which they were stored, and returns the first error of
// the function, or of the bus. A reader that follows outlives lost connections: it reads the stream, and new messages only wake it. So
// it shows each stored event once.
func (v *Inspector) Events(ctx context.Context, want Wanted, do func(StoredEvent) error) error {
	kind := ""
	if len(want.Kinds) == 1 {
		kind = want.Kinds[0]
	}
	subject, wake := v.bus.names.announcedIn(want.Namespace, kind), make(chan struct{}, 1)
	if want.Follow {
		sub, err := v.bus.nc.Subscribe(subject, func(*nats.Msg) {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if err != nil {
			return v.unread(v.bus.names.events(), err)
		}
		defer func() { _ = sub.Unsubscribe() }()
	}
	r := &eventReader{v: v, want: want, subject: subject, do: do}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for pause := followSoon; ; pause = min(2*pause, followEvery) {
		found, err := r.read(ctx)
		if err != nil || !want.Follow {
			return err
		}
		if found > 0 {
			pause = followSoon
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
			pause = followSoon / 2
		case <-time.After(pause):
		}
	}
}

// eventReader knows how far a call of Events has come.
type eventReader struct {
	v       *Inspector
	want    Wanted
	subject string
	do      func(StoredEvent) error
	stream  jetstream.Stream
	next    uint64
	away    bool
}

// begin finds the first event to read.
func (r *eventReader) begin(ctx context.Context) (err error) {
	name := r.v.bus.names.events()
	if r.stream, err = r.v.stream(ctx, name); err != nil || r.want.Since.IsZero() {
		return err
	}
	if r.next, err = r.v.since(ctx, name, r.subject, r.want.Since); r.next == 0 {
		r.next = r.stream.CachedInfo().State.LastSeq + 1
	}
	return err
}

// read reads what is stored, and returns how many events it found. A reader that follows waits for a bus that is away.
func (r *eventReader) read(ctx context.Context) (found int, err error) {
	var failed error
	err = r.v.walk(ctx, r.stream, r.subject, span{r.next, 1<<63 - 1}, func(m *jetstream.RawStreamMsg) error {
		r.next = m.Sequence + 1
		if r.selects(m.Subject) {
			found++
			failed = r.do(storedEvent(m))
		}
		return failed
	})
	switch {
	case failed != nil:
		return found, failed
	case ctx.Err() != nil && r.want.Follow:
		return found, nil
	case err != nil && r.want.Follow:
		r.report(err)
		return found, nil
	case err == nil && r.away:
		r.report(nil)
	}
	return found, err
}

func (r *eventReader) report(err error) {
	if r.away != (err != nil) && r.want.Away != nil {
		r.want.Away(err)
	}
	r.away = err != nil
}

// selects reports whether the event of the subject is of a wanted kind.
func (r *eventReader) selects(subject string) bool {
	t := strings.Split(subject, ".")
	return len(r.want.Kinds) == 0 || len(t) > 5 && slices.Contains(r.want.Kinds, t[4]+"."+t[5])
}

func storedEvent(m *jetstream.RawStreamMsg) StoredEvent {
	e := StoredEvent{Subject: m.Subject, Stored: m.Time, Text: m.Data}
	e.CloudEvent, e.Err = cloudevent.Decode(m.Header, m.Data)
	var whole struct {
		Version string `json:"specversion"`
	}
	if e.Err == nil && (json.Unmarshal(m.Data, &whole) != nil || whole.Version == "") { // the attributes are headers
		e.Text, e.Err = json.Marshal(e.CloudEvent)
	}
	return e
}

// Announced returns the last public event of a kind, such as "job.start", about the object of that name. ok is false if the stream
// has none. It finds the UID of an object that is gone.
func (v *Inspector) Announced(ctx context.Context, namespace, kind, name string) (last StoredEvent, ok bool, err error) {
	subject := "jobstream.events." + v.bus.names.token + "." + events.Token(namespace) + "." + kind + "." + events.Token(name)
	s, err := v.stream(ctx, v.bus.names.events())
	if err != nil {
		return StoredEvent{}, false, err
	}
	m, err := v.last(ctx, s, subject)
	if err != nil || m == nil {
		return StoredEvent{}, false, err
	}
	return storedEvent(m), true, nil
}
