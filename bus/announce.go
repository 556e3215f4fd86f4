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

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

var _ engine.Announcer = (*Bus)(nil)

// Announce implements engine.Announcer: it publishes the event for whoever has subscribed, and returns nil once the server
// has stored it, or knows that it had done so before. The message id is a hash of the event's source and id, so that an
// event that is announced again within eventsWindow is stored once, whoever announces it, in whatever words.
//
// An error with a method Permanent that says true means that the event can never be sent: a part of its address is
// missing, an attribute breaks CloudEvents, or it is too large. After any other, it may have been stored or not: announce
// it again.
func (b *Bus) Announce(ctx context.Context, p events.Public) error {
	m, err := b.announcement(p)
	if err != nil {
		return unsendable{fmt.Errorf("announce %s: %w", events.PublicID(p), err)}
	}
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) error {
		_, err := b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(b.names.events()))
		return err
	}) // not noted as confirmed: to list the cluster again would not bring back an event that the server loses
	if err != nil {
		b.top.suspect(err)
		return fmt.Errorf("announce %s: %w", events.PublicID(p), err)
	}
	return nil
}

// announcement makes a message of the event.
func (b *Bus) announcement(p events.Public) (*nats.Msg, error) {
	subject := events.PublicSubject(b.cfg.Cluster, p)
	if slices.Contains(strings.Split(subject, "."), "") {
		return nil, fmt.Errorf("its subject %q misses a part: the object's namespace and name, and the verdict, must be complete", subject)
	}
	data, err := events.EncodePublic(b.cfg.Cluster, p)
	if err != nil {
		return nil, err
	}
	if most := b.nc.MaxPayload() - headerRoom; int64(len(data)) > most && most > 0 {
		return nil, fmt.Errorf("%d bytes, at most %d fit: raise max_payload of the NATS server", len(data), most)
	}
	id, err := identity(data)
	if err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{jetstream.MsgIDHeader: {id}, "Content-Type": {events.ContentType}}}, nil
}

// identity reads an encoded event as a subscriber would, and returns its message id: 128 bits of a hash of what makes two
// CloudEvents one, their source and id. Those are up to 450 bytes long, and the server keeps every message id of the
// window in memory.
func identity(encoded []byte) (string, error) {
	var c event.Event
	if err := c.UnmarshalJSON(encoded); err != nil {
		return "", fmt.Errorf("it cannot be read back: %w", err)
	}
	if err := c.Validate(); err != nil { // which encoding does not do
		return "", fmt.Errorf("it breaks CloudEvents: %w", err)
	}
	sum := sha256.Sum256([]byte(c.Source() + "\n" + c.ID())) // a URI holds no line break
	return base64.RawURLEncoding.EncodeToString(sum[:16]), nil
}
