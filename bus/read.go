package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

// An Inspector reads what is stored by requests for single messages, each for the next one on a subject. It creates no consumer: a
// client that may create one can have the server write anywhere (docs/adr/0025-closed-bus.md), and consumers of clients that are
// gone would remain for a while. A request is answered by the leader of the stream, and changes nothing.

const (
	// readersAtOnce is how many parts of a stream are read at the same time: behind a port-forward an answer takes 20 ms, and 100,000
	// facts in a row would take half an hour.
	readersAtOnce = 16
	// readInOne is the number of messages up to which one reader suffices.
	readInOne = 64
)

// StoredFact is a fact as the stream keeps it.
type StoredFact struct {
	// Sequence is its number in the stream: facts are in this order.
	Sequence uint64
	// Stored is when the server stored it.
	Stored time.Time
	// Payload is the encoded fact. events.Decode reads it, if this program is as new as the one that has published it.
	Payload []byte
}

// StoredState is the state of a key as the bucket keeps it.
type StoredState struct {
	Revision uint64
	Stored   time.Time
	Data     []byte
}

// Retention is what the stream of facts holds about all objects.
type Retention struct {
	// Oldest is when its oldest fact was stored; zero if it is empty.
	Oldest time.Time
	// MaxAge and MaxBytes are its limits: beyond either, the server drops the oldest facts.
	MaxAge   time.Duration
	MaxBytes int64
	// Of is how many facts about the key it holds.
	Of uint64
}

// Retained returns what the stream of facts holds. Its error names cause and remedy.
func (v *Inspector) Retained(ctx context.Context, key events.Key) (Retention, error) {
	if err := key.Valid(); err != nil {
		return Retention{}, err
	}
	s, err := v.stream(ctx, v.bus.names.facts())
	if err != nil {
		return Retention{}, err
	}
	var info *jetstream.StreamInfo
	err = v.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		info, err = s.Info(ctx, jetstream.WithSubjectFilter(v.bus.names.factsOf(key)))
		return err
	})
	if err != nil {
		return Retention{}, v.unread(v.bus.names.facts(), err)
	}
	r := Retention{Oldest: info.State.FirstTime, MaxAge: info.Config.MaxAge, MaxBytes: info.Config.MaxBytes}
	if info.State.Msgs == 0 {
		r.Oldest = time.Time{}
	}
	for _, n := range info.State.Subjects {
		r.Of += n
	}
	return r, nil
}

// Facts returns the stored facts about the key in the order in which they were stored. The stream keeps a fact after it was
// processed, until it is three days old or the stream is full. A fact that the server drops meanwhile is left out.
func (v *Inspector) Facts(ctx context.Context, key events.Key) ([]StoredFact, error) {
	held, err := v.Retained(ctx, key)
	if err != nil || held.Of == 0 {
		return nil, err
	}
	stream, subject := v.bus.names.facts(), v.bus.names.factsOf(key)
	s, err := v.stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	state := s.CachedInfo().State
	first, err := v.next(ctx, s, subject, state.FirstSeq)
	if err != nil || first == nil {
		return nil, err
	}
	found, err := v.gather(ctx, s, subject, split(first.Sequence, state.LastSeq, held.Of))
	if err != nil {
		return nil, err
	}
	var all []StoredFact
	for _, m := range found {
		all = append(all, StoredFact{Sequence: m.Sequence, Stored: m.Time, Payload: m.Data})
	}
	return all, nil
}

// State returns the state of the key; ok is false if there is none: the object needs none any more, or the state was lost.
func (v *Inspector) State(ctx context.Context, key events.Key) (state StoredState, ok bool, err error) {
	if err := key.Valid(); err != nil {
		return StoredState{}, false, err
	}
	name := v.bus.names.state(key.Function)
	s, err := v.stream(ctx, name)
	if err != nil {
		return StoredState{}, false, err
	}
	m, err := v.last(ctx, s, v.bus.names.value(key))
	if err != nil || m == nil || m.Header.Get(headerKVOperation) != "" || m.Header.Get(headerMarkerReason) != "" || len(m.Data) == 0 {
		return StoredState{}, false, err
	}
	return StoredState{Revision: m.Sequence, Stored: m.Time, Data: m.Data}, true, nil
}

// span is a range of sequences, both included.
type span struct{ from, to uint64 }

// split divides a stream into spans of about the same length, one if there are few messages to read.
func split(from, to, messages uint64) (parts []span) {
	n := uint64(readersAtOnce)
	if messages <= readInOne {
		n = 1
	}
	length := (to-from)/n + 1
	for ; from <= to; from += length {
		parts = append(parts, span{from, min(to, from+length-1)})
	}
	return parts
}

// walk calls a function for each message of the subject in the span, oldest first.
func (v *Inspector) walk(ctx context.Context, s jetstream.Stream, subject string, in span, do func(*jetstream.RawStreamMsg) error) error {
	for seq := in.from; ; {
		m, err := v.next(ctx, s, subject, seq)
		if err != nil || m == nil || m.Sequence > in.to {
			return err
		}
		if err := do(m); err != nil {
			return err
		}
		seq = m.Sequence + 1
	}
}

// next returns the first message of the subject from the sequence on, nil if there is none.
func (v *Inspector) next(ctx context.Context, s jetstream.Stream, subject string, from uint64) (m *jetstream.RawStreamMsg, err error) {
	err = v.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		m, err = s.GetMsg(ctx, max(from, 1), jetstream.WithGetMsgSubject(subject))
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, v.unread(s.CachedInfo().Config.Name, err)
}

// last returns the newest message of the subject, nil if there is none.
func (v *Inspector) last(ctx context.Context, s jetstream.Stream, subject string) (m *jetstream.RawStreamMsg, err error) {
	err = v.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		m, err = s.GetLastMsgForSubject(ctx, subject)
		return err
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return m, v.unread(s.CachedInfo().Config.Name, err)
}

// since returns the sequence of the first message of the subject that was stored at that time or later, 0 if there is none.
func (v *Inspector) since(ctx context.Context, stream, subject string, at time.Time) (seq uint64, err error) {
	question, err := json.Marshal(map[string]any{"start_time": at.UTC(), "next_by_subj": subject})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Message *struct {
			Sequence uint64 `json:"seq"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	err = v.bus.ask(ctx, requestTimeout, func(ctx context.Context) error {
		m, err := v.bus.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, question)
		if err != nil {
			return err
		}
		return json.Unmarshal(m.Data, &answer)
	})
	switch {
	case err != nil:
		return 0, v.unread(stream, err)
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound, answer.Error == nil && answer.Message == nil:
		return 0, nil
	case answer.Error != nil:
		return 0, v.unread(stream, answer.Error)
	}
	return answer.Message.Sequence, nil
}

func (v *Inspector) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := v.bus.find(ctx, name)
	return s, v.unread(name, err)
}

// unread explains why a stream cannot be read.
func (v *Inspector) unread(stream string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("bus: there is no stream %s on %s: is the name of the cluster (--cluster-name) right, and have a trigger and a reconciler of it run with this server? %w",
			stream, v.bus.cfg.where(), err)
	case errors.Is(err, context.Canceled):
		return err
	}
	// The server reports a missing permission apart from the request, which it does not answer.
	return fmt.Errorf("bus: read stream %s: %w", stream, cmp.Or(v.bus.problems.err(), v.bus.Err(), explain(err)))
}
