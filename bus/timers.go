package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// Timers are timers of the server, as JetStream schedules: engine.Timers. They fire while no program runs, and a restarted server
// fires at once what it has missed.
type Timers struct{ bus *Bus }

var _ engine.Timers = (*Timers)(nil)

// Timers returns the timers of this cluster.
func (b *Bus) Timers() *Timers { return &Timers{bus: b} }

// Set implements engine.Timers. By the server's clock, the timer fires no earlier than the given time; a busy server fires up to
// a quarter of a second late, also if the time has passed already. The message has no id: within the window of duplicates, a
// timer could otherwise not be set back to an earlier value.
//
// A timer that is set while it fires may never fire for its new time: the server removes the schedule by its subject when it
// stores the message. So a reconciler that receives a fired timer sets again what is still to come.
func (t *Timers) Set(ctx context.Context, key events.Key, name string, at time.Time) error {
	if err := key.Valid(); err != nil {
		return fmt.Errorf("set timer %q of %.200q: %w", name, key, err)
	}
	if name == "" {
		return fmt.Errorf("set timer of %s: it needs a name", key)
	}
	if at.IsZero() || at.Year() > 9999 || at.Year() < 1 {
		return fmt.Errorf("set timer %s of %s: %w: %v", name, key, errors.New("no such time"), at)
	}
	f := events.Fact{Cluster: t.bus.cfg.Cluster, Key: key, Event: events.TimerFired{Name: name, At: at}}
	data, err := events.Encode(f)
	if err != nil {
		return fmt.Errorf("set timer %s of %s: %w", name, key, err)
	}
	// jetstream.WithScheduleAt would truncate the time to the second and so fire up to one second early; the server reads
	// fractions. Milliseconds, rounded up, are precise enough.
	at = at.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC()
	m := &nats.Msg{
		Subject: t.bus.names.schedule(key, name),
		Data:    data,
		Header: nats.Header{
			headerSchedule:       {"@at " + at.Format(time.RFC3339Nano)},
			headerScheduleTarget: {t.bus.names.firedTimer(key, name)},
			"Content-Type":       {events.ContentType},
		},
	}
	if err := t.bus.sendable(m.Subject, "", len(data)); err != nil {
		return fmt.Errorf("set timer %.200s of %s: %w", name, key, err)
	}
	var ack *jetstream.PubAck
	err = t.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		ack, err = t.bus.js.PublishMsg(ctx, m, jetstream.WithExpectStream(t.bus.names.timers()))
		return err
	})
	if err != nil {
		t.bus.failed(t.bus.names.timers(), err)
		return fmt.Errorf("set timer %s of %s: %w", name, key, err)
	}
	t.bus.top.confirmed(ack.Stream, ack.Sequence)
	return nil
}
