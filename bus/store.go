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

// restTTL is how long a resting state is kept: long enough for the late facts of an object that has just ended, short enough that
// a cluster with a million Jobs a day keeps the states of one hour. A state that is dropped too early costs one inventory and
// nothing else.
const restTTL = time.Hour

// liveTTL is how long any other state is kept after its last write. The trigger's relist, every ten minutes, refreshes the states
// of Jobs that exist; the rest belongs to objects whose end was never observed.
const liveTTL = 24 * time.Hour

// Store is the memory of one function: engine.Store on a key-value bucket. It caches no revisions.
type Store struct {
	bus      *Bus
	function string
	stream   jetstream.Stream
}

var _ engine.Store = (*Store)(nil)

// Store opens the memory of the function, and creates its bucket if there is none. Its error names cause and remedy.
func (b *Bus) Store(function string) (*Store, error) {
	if function == "" {
		return nil, errors.New("bus: a store needs the name of a function")
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.ConnectTimeout)
	defer cancel()
	s, err := b.top.add(ctx, b.stateStream(function))
	if err != nil {
		return nil, err
	}
	return &Store{bus: b, function: function, stream: s}, nil
}

// loadTimeouts are for successive requests: a stream that has just lost its leader never answers requests from before it has
// another, and a large state on a busy server may need the time of the last.
var loadTimeouts = []time.Duration{500 * time.Millisecond, askTimeout, requestTimeout}

// Load implements engine.Store. The stream's leader answers. A state that was deleted by other means than Forget (`nats kv del`)
// leaves a marker: then data is nil and the revision is the marker's, which Save accepts.
func (s *Store) Load(ctx context.Context, key events.Key) ([]byte, uint64, error) {
	subject, err := s.subject(key)
	if err != nil {
		return nil, 0, err
	}
	var m *jetstream.RawStreamMsg
	for _, most := range loadTimeouts {
		err = s.bus.ask(ctx, most, func(ctx context.Context) (err error) {
			m, err = s.stream.GetLastMsgForSubject(ctx, subject)
			return err
		})
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			break
		}
	}
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, 0, nil
	case err != nil:
		s.bus.top.suspect(err)
		return nil, 0, fmt.Errorf("load state of %s: %w", key, err)
	case m.Header.Get(headerKVOperation) != "", m.Header.Get(headerMarkerReason) != "", len(m.Data) == 0:
		return nil, m.Sequence, nil
	}
	return m.Data, m.Sequence, nil
}

// Save implements engine.Store. After an error that does not wrap engine.ErrConflict the state may or may not have been written,
// and the next Load shows which. Such an error comes after five seconds at most. A resting state expires after an hour, any other
// after a day.
func (s *Store) Save(ctx context.Context, key events.Key, data []byte, revision uint64, rests bool) (uint64, error) {
	subject, err := s.subject(key)
	if err != nil {
		return 0, err
	}
	if err := s.bus.sendable(subject, "", len(data)); err != nil {
		return 0, fmt.Errorf("save state of %s: %w", key, err)
	}
	o := []jetstream.PublishOpt{
		jetstream.WithExpectLastSequencePerSubject(revision),
		jetstream.WithExpectStream(s.bus.names.state(s.function)),
	}
	ttl := liveTTL
	if rests {
		ttl = restTTL
	}
	o = append(o, jetstream.WithMsgTTL(ttl))
	var ack *jetstream.PubAck
	err = s.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		ack, err = s.bus.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, o...)
		return err
	})
	switch code(err) {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return 0, fmt.Errorf("save state of %s at revision %d: %w: %w", key, revision, engine.ErrConflict, err)
	}
	if err != nil {
		s.bus.failed(s.bus.names.state(s.function), err)
		return 0, fmt.Errorf("save state of %s at revision %d: %w", key, revision, err)
	}
	s.bus.top.confirmed(ack.Stream, ack.Sequence)
	return ack.Sequence, nil
}

// Forget implements engine.Store. The key is as if it had never existed: its next revision starts from 0.
func (s *Store) Forget(ctx context.Context, key events.Key) error {
	subject, err := s.subject(key)
	if err != nil {
		return err
	}
	err = s.bus.ask(ctx, requestTimeout, func(ctx context.Context) error {
		return s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
	if err != nil {
		s.bus.top.suspect(err)
		s.bus.refused(s.bus.names.state(s.function), err)
		return fmt.Errorf("forget state of %s: %w", key, err)
	}
	return nil
}

// subject rejects a key of another function, and one without a valid name.
func (s *Store) subject(key events.Key) (string, error) {
	if key.Function != s.function {
		return "", fmt.Errorf("state of %s: this store is function %s's", key, s.function)
	}
	if err := key.Valid(); err != nil {
		return "", fmt.Errorf("state of %.200q: %w", key, err)
	}
	return s.bus.names.value(key), nil
}
