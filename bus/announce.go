package bus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/bus/cloudevent"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

var _ engine.Announcer = (*Bus)(nil)

// Announce implements engine.Announcer: it publishes the event for subscribers. It returns nil once the server has stored the
// event or reports that it already had. The message id is a hash of the event's source and id, so an event that any process
// announces again within eventsWindow, in whatever words, is stored once.
//
// An error whose method Permanent returns true means that the event can never be sent: a part of its address is missing, an
// attribute breaks CloudEvents, or it is too large. After any other error the event may or may not have been stored: announce it
// again.
func (b *Bus) Announce(ctx context.Context, p events.Public) error {
	m, err := b.announcement(p)
	if err != nil {
		return unsendable{fmt.Errorf("announce %s: %w", events.PublicID(p), err)}
	}
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) error {
		_, err := b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(b.names.events()))
		return err
	}) // not noted as confirmed: listing the cluster again would not restore an event that the server loses
	if err != nil {
		b.failed(b.names.events(), err)
		return fmt.Errorf("announce %s: %w", events.PublicID(p), err)
	}
	b.wrote(b.names.events())
	return nil
}

// announcement builds the event's message.
func (b *Bus) announcement(p events.Public) (*nats.Msg, error) {
	subject := events.PublicSubject(b.cfg.Cluster, p)
	if slices.Contains(strings.Split(subject, "."), "") {
		return nil, fmt.Errorf("its subject %q misses a part: the object's namespace and name, and the verdict, must be complete", subject)
	}
	e, err := events.CloudEvent(b.cfg.Cluster, p)
	if err != nil {
		return nil, err
	}
	header, data, err := cloudevent.Encode(e, b.cfg.EventMode)
	if err != nil {
		return nil, err
	}
	if err := b.sendable(subject, "", len(data)); err != nil {
		return nil, err
	}
	header.Set(jetstream.MsgIDHeader, identity(e))
	return &nats.Msg{Subject: subject, Data: data, Header: header}, nil
}

// identity is the message id of an event: 128 bits of a hash of its source and id, which identify a CloudEvent in every mode. The
// two together have up to 450 bytes, and the server keeps every message id of the window in memory.
func identity(e event.Event) string {
	sum := sha256.Sum256([]byte(e.Source() + "\n" + e.ID())) // a URI contains no line break
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
