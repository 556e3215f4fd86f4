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

// A consumer in a file costs a server that stands alone more than all else that jobstream asks of it: while there is work, the
// server writes the file of each partition ten times a second. A consumer in memory costs nothing, and is gone when the server
// restarts. So the reconciler that serves the partition stores every few seconds up to where all is acknowledged, and a new
// consumer begins there:
//
//	consumer, in memory        states of the function, in a file
//	floor 1041  ── Info ──▶    _floor.07 = 1041
//	 (restart)
//	begins at 1042 ◀───────    _floor.07 = 1041
//
// What was acknowledged after the last store comes again, and folds into the state as nothing new. Nothing is skipped: a fact is
// acknowledged after its state is written, and the floor is written after that, to the same stream. So a disk that has lost its
// last writes has lost the floor before it has lost a state that the floor relies on.
//
// In a cluster a consumer outlives its servers' restarts in a log of its own, which has no such file.

// floorInterval is how often the floor of a partition with work is stored, by two requests.
const floorInterval = 5 * time.Second

// floor is the stored floor of one partition: the highest sequence up to which every fact is acknowledged.
type floor struct {
	bus     *Bus
	stream  string // the states of the function
	subject string
}

// load returns the sequence with which a new consumer begins: 0, with the first fact, unless there is a stored floor that is true
// of this stream. It is not where the stream has lost its end, as after a power failure, and has used its sequences again: then the
// fact at the floor is younger than the floor.
func (f floor) load(ctx context.Context) (first uint64, err error) {
	var stored, fact *jetstream.RawStreamMsg
	var last uint64
	err = f.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		if stored, err = f.last(ctx); err != nil {
			return err
		}
		if first, err = strconv.ParseUint(string(stored.Data), 10, 63); err != nil {
			return jetstream.ErrMsgNotFound // deleted or written by another client
		}
		facts, err := f.bus.js.Stream(ctx, f.bus.names.facts())
		if err != nil {
			return err
		}
		last = facts.CachedInfo().State.LastSeq
		if fact, err = facts.GetMsg(ctx, first); errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil // it was stored so long ago that it is dropped
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("load floor: %w", err)
	case first > last, fact != nil && fact.Time.After(stored.Time):
		return 0, nil
	}
	return first + 1, nil
}

// last returns the message with the stored floor.
func (f floor) last(ctx context.Context) (*jetstream.RawStreamMsg, error) {
	s, err := f.bus.js.Stream(ctx, f.stream)
	if err != nil {
		return nil, err
	}
	return s.GetLastMsgForSubject(ctx, f.subject)
}

// save stores the floor. An older one that comes late only lets more facts come again.
func (f floor) save(ctx context.Context, floor uint64) error {
	m := &nats.Msg{Subject: f.subject, Data: strconv.AppendUint(nil, floor, 10)}
	err := f.bus.ask(ctx, requestTimeout, func(ctx context.Context) error {
		_, err := f.bus.js.PublishMsg(ctx, m, jetstream.WithExpectStream(f.stream))
		return err
	})
	if err != nil {
		f.bus.failed(f.stream, err)
		return fmt.Errorf("save floor: %w", err)
	}
	return nil
}

// standsAlone reports whether the bus is one server. A stream with one replica in a cluster does not count: there the server
// remembers a consumer and where it began, not where the reconcilers were.
func (b *Bus) standsAlone() bool {
	b.top.mu.Lock()
	defer b.top.mu.Unlock()
	s := b.top.streams[b.names.facts()]
	return b.cfg.Replicas == 1 && s != nil && s.stream != nil && (s.info.Cluster == nil || s.info.Cluster.Name == "")
}
