package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

const (
	// asideRetry is the pause before a message that could not be quarantined is delivered again.
	asideRetry = 5 * time.Second
	// unreadable is the name of the timer that wakes a key after a message for it could not be read. It fires after
	// unreadableAfter, so that many such messages cost one inventory.
	unreadable      = "unreadable"
	unreadableAfter = time.Second
)

// Quarantined is a message in the quarantine: unreadable, or one that broke a function. Requeue puts it back.
type Quarantined struct {
	// ID is its number in the quarantine; no other message ever gets the same.
	ID uint64
	// Key is "<function>.<namespace>.<uid>" as escaped tokens, "" where the subject does not contain one.
	Key string
	// Subject is the subject under which the message was stored, in Stream at Sequence.
	Subject  string
	Stream   string
	Sequence uint64
	// Payload is the message's, cut off where Truncated, the original length, is larger.
	Payload   []byte
	Truncated int
	// Size is the length of the stored payload.
	Size int
	// Reason is why the message was quarantined, and Time is when.
	Reason string
	Time   time.Time
}

// Quarantine implements engine.Delivery. The message is acknowledged once its copy is safe; until then it is delivered again.
func (d *delivery) Quarantine(reason error) {
	if err := d.setAside(context.Background(), reason); err != nil {
		d.bus.throttled.warn("a message cannot be set aside; it will come again", "subject", d.msg.Subject(), "err", err)
		d.Nak(asideRetry)
		return
	}
	d.Ack()
}

// refuse quarantines a message that cannot be read. Its key may have missed something unknown: so refuse deletes the key's state
// and sets a timer that wakes it to take inventory, as an engine does where a function breaks on a fact. Only then does it
// acknowledge the message.
func (d *delivery) refuse(reason error) {
	ctx := context.Background()
	err := d.setAside(ctx, reason)
	if err == nil {
		err = d.bus.forgetKey(ctx, d.msg.Subject())
	}
	if err != nil {
		d.bus.throttled.warn("a message cannot be set aside; it will come again", "subject", d.msg.Subject(), "err", err)
		d.Nak(asideRetry)
		return
	}
	d.Ack()
}

// forgetKey deletes the state of the key that the subject names, and makes the key take a turn soon. A subject without a key has
// no state to delete.
func (b *Bus) forgetKey(ctx context.Context, subject string) error {
	tokens, ok := keyTokens(subject)
	if !ok {
		return nil
	}
	key, err := events.ParseTokens(tokens)
	if err != nil || key.Valid() != nil {
		return nil //nolint:nilerr // no key, no state
	}
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) error {
		s, err := b.js.Stream(ctx, b.names.state(key.Function))
		if err != nil {
			return err
		}
		return s.Purge(ctx, jetstream.WithPurgeSubject(b.names.value(key)))
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) { // without a stream there is no state
		b.top.suspect(err)
		b.refused(b.names.state(key.Function), err)
		return fmt.Errorf("forget state of %s: %w", key, err)
	}
	return b.Timers().Set(ctx, key, unreadable, time.Now().Add(unreadableAfter))
}

func (d *delivery) setAside(ctx context.Context, reason error) error {
	b := d.bus
	meta, err := d.msg.Metadata()
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	tokens, ok := keyTokens(d.msg.Subject())
	if !ok || len(b.names.aside(tokens)) > maxSubject {
		tokens = "unknown"
	}
	seq := strconv.FormatUint(meta.Sequence.Stream, 10)
	origin := meta.Stream + "/" + seq
	m := &nats.Msg{Subject: b.names.aside(tokens), Data: d.msg.Data(), Header: nats.Header{
		headerSubject:  {oneLine(d.msg.Subject())},
		headerStream:   {meta.Stream},
		headerSequence: {seq},
		headerReason:   {oneLine(reason.Error())},
		headerTime:     {time.Now().UTC().Format(time.RFC3339Nano)},
		headerKey:      {tokens},
		headerRequeue:  {b.requeueCommand(origin)},
	}}
	if most := b.nc.MaxPayload() - headerRoom; int64(len(m.Data)) > most {
		m.Header.Set(headerTruncated, strconv.Itoa(len(m.Data)))
		m.Data = m.Data[:most]
	}
	var ack *jetstream.PubAck
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		ack, err = b.js.PublishMsg(ctx, m, jetstream.WithMsgID(origin), jetstream.WithExpectStream(b.names.quarantine()))
		return err
	})
	if err != nil {
		b.failed(b.names.quarantine(), err)
		return fmt.Errorf("set aside: %w", err)
	}
	b.wrote(b.names.quarantine())
	if !ack.Duplicate { // otherwise it was logged when it was first quarantined
		b.log.Error("message set aside", "subject", d.msg.Subject(), "stream", meta.Stream, "sequence", meta.Sequence.Stream, "reason", oneLine(reason.Error()), "requeue", b.requeueCommand(origin))
		b.cfg.SetAside(d.function)
	}
	return nil
}

// oneLine makes any text a header's value: at most 4 KiB, no line breaks.
func oneLine(s string) string {
	const most = 4 << 10
	if len(s) > most {
		s = s[:most]
	}
	out := []byte(s)
	for i, c := range out {
		if c < ' ' || c == 0x7f {
			out[i] = ' '
		}
	}
	return string(out)
}

// Quarantined lists the quarantine, oldest first: at most 1,000 messages are kept.
func (b *Bus) Quarantined(ctx context.Context) (all []Quarantined, err error) {
	err = b.eachQuarantined(ctx, func(q Quarantined) { all = append(all, q) })
	return all, err
}

// eachQuarantined calls a function for each message of the quarantine, oldest first, and holds one message at a time.
func (b *Bus) eachQuarantined(ctx context.Context, do func(Quarantined)) error {
	s, err := b.find(ctx, b.names.quarantine())
	if err != nil {
		b.top.suspect(err)
		return fmt.Errorf("list what was set aside: %w", err)
	}
	for seq := s.CachedInfo().State.FirstSeq; ; {
		var m *jetstream.RawStreamMsg
		err := b.ask(ctx, wholeTimeout, func(ctx context.Context) (err error) {
			m, err = s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(b.names.quarantined())) // the next one that is left
			return err
		})
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list what was set aside: %w", err)
		}
		do(quarantinedMessage(m))
		seq = m.Sequence + 1
	}
}

func quarantinedMessage(m *jetstream.RawStreamMsg) Quarantined {
	q := Quarantined{
		ID:      m.Sequence,
		Subject: m.Header.Get(headerSubject),
		Stream:  m.Header.Get(headerStream),
		Reason:  m.Header.Get(headerReason),
		Payload: m.Data,
		Size:    len(m.Data),
	}
	q.Key, _ = keyTokens(q.Subject)
	q.Sequence, _ = strconv.ParseUint(m.Header.Get(headerSequence), 10, 64)
	if n, _ := strconv.Atoi(m.Header.Get(headerTruncated)); n > q.Size {
		q.Truncated = n
	}
	if q.Time, _ = time.Parse(time.RFC3339Nano, m.Header.Get(headerTime)); q.Time.IsZero() {
		q.Time = m.Time
	}
	return q
}
