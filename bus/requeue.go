package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

// ErrNotQuarantined reports that the quarantine does not hold the message: it was put back already, dropped by the bounded
// stream, or never there.
var ErrNotQuarantined = errors.New("not in the quarantine (any more)")

// Quarantined lists the quarantine, oldest first, without the payloads; Size is the length of each.
func (v *Inspector) Quarantined(ctx context.Context) ([]Quarantined, error) {
	var all []Quarantined
	err := v.bus.eachQuarantined(ctx, func(q Quarantined) {
		q.Payload = nil // together up to 256 MB
		all = append(all, q)
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil // no program has created it yet: nothing was quarantined
	}
	return all, err
}

// RequeueCommand returns the shell command that puts the message back.
func (v *Inspector) RequeueCommand(q Quarantined) string {
	return v.bus.requeueCommand(strconv.FormatUint(q.ID, 10))
}

func (b *Bus) requeueCommand(which string) string {
	name := b.cfg.Cluster
	if plain(name) != name {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return oneLine("jobstream-reconciler requeue --cluster-name " + name + " " + which)
}

// Find returns the ID of a message, given as its ID in text or as "<stream>/<sequence>", its origin as its headers and the log
// show it.
func (v *Inspector) Find(ctx context.Context, which string) (uint64, error) {
	if id, err := strconv.ParseUint(which, 10, 64); err == nil {
		return id, nil
	}
	stream, seq, ok := strings.Cut(which, "/")
	sequence, err := strconv.ParseUint(seq, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is no ID: they are numbers, or <stream>/<sequence>, as \"jobstream-reconciler quarantine\" shows them", which)
	}
	all, err := v.Quarantined(ctx)
	if err != nil {
		return 0, err
	}
	for _, q := range all {
		if q.Stream == stream && q.Sequence == sequence {
			return q.ID, nil
		}
	}
	return 0, fmt.Errorf("%s: %w", which, ErrNotQuarantined)
}

// Requeue publishes the message again where it came from, and removes it from the quarantine when the server has confirmed that.
// A fact is published on the trigger's subject, so that it gets its partition. A fired timer, which has no schedule any more, is
// published on its own subject. Both reach the function as if they were new, which is harmless if they are not.
//
// The message's new id is its number in the quarantine. The window of duplicates, which knows the old id, therefore lets it pass
// once, however often and by however many clients the command is repeated after a crash. If the function breaks on it again, it
// is quarantined again, under another number.
func (v *Inspector) Requeue(ctx context.Context, id uint64) error {
	b := v.bus
	fail := func(err error) error { return fmt.Errorf("requeue %d: %w", id, err) }
	s, err := b.find(ctx, b.names.quarantine())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fail(ErrNotQuarantined)
	}
	if err != nil {
		return fail(err)
	}
	var stored *jetstream.RawStreamMsg
	err = b.ask(ctx, wholeTimeout, func(ctx context.Context) (err error) { stored, err = s.GetMsg(ctx, id); return err })
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return fail(ErrNotQuarantined)
	}
	if err != nil {
		return fail(err)
	}
	m, stream, err := b.original(quarantinedMessage(stored))
	if err != nil {
		return fail(err)
	}
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) error {
		_, err := b.js.PublishMsg(ctx, m, jetstream.WithExpectStream(stream))
		return err
	})
	if violated(b.nc, m.Subject) {
		return fail(fmt.Errorf("publish it on %s: the server does not let this program's user: do it as the user \"operator\" of deploy/nats/accounts.conf", m.Subject))
	}
	if err != nil {
		return fail(fmt.Errorf("publish it on %s: %w: it may have been stored or not; repeat the command, that is harmless", m.Subject, err))
	}
	if err := b.drop(ctx, s, id); err != nil {
		return fail(fmt.Errorf("it is back on %s, and may still be in the quarantine: %w: repeat the command, that is harmless", m.Subject, err))
	}
	return nil
}

// drop removes a message. The server has several errors for a message that another client has just removed, so drop looks whether
// it is gone.
func (b *Bus) drop(ctx context.Context, s jetstream.Stream, id uint64) error {
	err := b.ask(ctx, requestTimeout, func(ctx context.Context) error { return s.DeleteMsg(ctx, id) })
	if err == nil {
		return nil
	}
	gone := b.ask(ctx, requestTimeout, func(ctx context.Context) error { _, err := s.GetMsg(ctx, id); return err })
	if errors.Is(gone, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// original rebuilds the message that was quarantined, and returns the stream that it belongs to.
func (b *Bus) original(q Quarantined) (m *nats.Msg, stream string, err error) {
	if q.Truncated > 0 {
		return nil, "", fmt.Errorf("refused: only %d of its %d bytes are left, since a larger message would not have fit into the quarantine; delete it: nats stream rmm %s %d",
			len(q.Payload), q.Truncated, b.names.quarantine(), q.ID)
	}
	subject, stream := q.Subject, b.names.timers()
	if !b.names.isFired(subject) {
		stream = b.names.facts()
		published, ok := b.names.unpartitioned(q.Subject)
		if !ok {
			return nil, "", fmt.Errorf("refused: its subject %q is neither that of a fact nor that of a fired timer of cluster %s", q.Subject, b.cfg.Cluster)
		}
		subject = published
	}
	if err := b.sendable(subject, "", len(q.Payload)); err != nil {
		return nil, "", fmt.Errorf("refused: %w", err)
	}
	return &nats.Msg{Subject: subject, Data: q.Payload, Header: nats.Header{
		jetstream.MsgIDHeader: {"requeued/" + strconv.FormatUint(q.ID, 10)},
		"Content-Type":        {events.ContentType},
	}}, stream, nil
}
