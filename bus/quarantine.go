package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// asideRetry is when a message that could not be set aside is delivered again to try once more.
const asideRetry = 5 * time.Second

// Quarantined is a message that was set aside: unreadable, or one that a function broke on. To replay it, publish Payload
// again by Publish, or on Subject without its lane.
type Quarantined struct {
	// Key is "<function>.<namespace>.<uid>" as escaped tokens, "" where the subject did not tell.
	Key string
	// Subject is what the message was stored under, Stream and Sequence where.
	Subject  string
	Stream   string
	Sequence uint64
	// Payload is the message as it came. It is cut where Truncated, the whole length, is more than it holds.
	Payload   []byte
	Truncated int
	// Reason is why, Time is when.
	Reason string
	Time   time.Time
}

// Quarantine implements engine.Delivery. The message is acknowledged once its copy is safe; until then it comes again.
func (d *delivery) Quarantine(reason error) {
	if err := d.setAside(context.Background(), reason); err != nil {
		d.bus.gripes.warn("a message cannot be set aside; it will come again", "subject", d.msg.Subject(), "err", err)
		d.Nak(asideRetry)
		return
	}
	d.Ack()
}

func (d *delivery) setAside(ctx context.Context, reason error) error {
	b := d.bus
	meta, err := d.msg.Metadata()
	if err != nil {
		return fmt.Errorf("set aside: %w", err)
	}
	tokens, ok := keyTokens(d.msg.Subject())
	if !ok {
		tokens = "unknown"
	}
	seq := strconv.FormatUint(meta.Sequence.Stream, 10)
	m := &nats.Msg{Subject: b.names.aside(tokens), Data: d.msg.Data(), Header: nats.Header{
		headerSubject:  {d.msg.Subject()},
		headerStream:   {meta.Stream},
		headerSequence: {seq},
		headerReason:   {oneLine(reason.Error())},
		headerTime:     {time.Now().UTC().Format(time.RFC3339Nano)},
	}}
	if most := b.nc.MaxPayload() - headerRoom; int64(len(m.Data)) > most {
		m.Header.Set(headerTruncated, strconv.Itoa(len(m.Data)))
		m.Data = m.Data[:most]
	}
	var ack *jetstream.PubAck
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		ack, err = b.js.PublishMsg(ctx, m, jetstream.WithMsgID(meta.Stream+"/"+seq), jetstream.WithExpectStream(b.names.quarantine()))
		return err
	})
	if err != nil {
		b.top.suspect(err)
		return fmt.Errorf("set aside: %w", err)
	}
	if !ack.Duplicate { // else it was heard of when it was set aside
		b.log.Error("message set aside", "subject", d.msg.Subject(), "stream", meta.Stream, "sequence", meta.Sequence.Stream, "reason", oneLine(reason.Error()))
		b.cfg.SetAside(d.function)
	}
	return nil
}

// oneLine makes a header's value of any text: at most 4 KiB, no line breaks.
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

// Quarantined lists what was set aside, oldest first: at most 1,000 messages are kept.
func (b *Bus) Quarantined(ctx context.Context) ([]Quarantined, error) {
	s, err := b.find(ctx, b.names.quarantine())
	if err != nil {
		b.top.suspect(err)
		return nil, fmt.Errorf("list what was set aside: %w", err)
	}
	state := s.CachedInfo().State
	var all []Quarantined
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list what was set aside: %w", err)
		}
		all = append(all, quarantinedMessage(m))
	}
	return all, nil
}

func quarantinedMessage(m *jetstream.RawStreamMsg) Quarantined {
	q := Quarantined{
		Subject: m.Header.Get(headerSubject),
		Stream:  m.Header.Get(headerStream),
		Reason:  m.Header.Get(headerReason),
		Payload: m.Data,
	}
	q.Key, _ = keyTokens(q.Subject)
	q.Sequence, _ = strconv.ParseUint(m.Header.Get(headerSequence), 10, 64)
	q.Truncated, _ = strconv.Atoi(m.Header.Get(headerTruncated))
	q.Time, _ = time.Parse(time.RFC3339Nano, m.Header.Get(headerTime))
	return q
}
