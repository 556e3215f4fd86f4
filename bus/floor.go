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
// What was acknowledged above the stored floor comes again, and folds into the state as nothing new. Nothing is skipped: a fact is
// acknowledged after its state is written, and the floor is written after that, to the same stream. A consumer's file gives no such
// order.
//
// In a cluster consumers are in files: there the servers create a consumer again by themselves, and one in memory would begin where
// it began when it was created.

// floorInterval is how often the floor of a partition with work is stored, by two requests.
const floorInterval = 5 * time.Second

// floor is the stored floor of one partition: the highest sequence up to which every fact is acknowledged.
type floor struct {
	bus     *Bus
	stream  string // the states of the function
	subject string
}

// beginning is where a new consumer begins.
type beginning struct {
	sequence uint64 // of the first fact that it delivers; 0 for the first in the stream
	// missed reports whether facts from before it are gone that may never have been delivered: the stream has dropped them, and no
	// consumer is left that remembers.
	missed bool
}

// load returns where a new consumer begins: with the first fact, unless there is a stored floor that is true of this stream. It is
// not where the stream has lost its end, as after a power failure, and has used its sequences again: then the fact at the floor is
// younger than the floor.
func (f floor) load(ctx context.Context) (at beginning, err error) {
	err = f.bus.ask(ctx, requestTimeout, func(ctx context.Context) error {
		stored, err := f.last(ctx)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		facts, err := f.bus.js.Stream(ctx, f.bus.names.facts())
		if err != nil {
			return err
		}
		info := facts.CachedInfo()
		sequence := number(stored)
		if sequence >= info.State.FirstSeq { // an older one is of facts that the stream has dropped by now
			fact, err := facts.GetMsg(ctx, sequence)
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound):
				return nil // beyond the end
			case err != nil:
				return err
			case fact.Time.After(stored.Time):
				return nil
			}
		}
		at.missed = max(sequence+1, info.Config.FirstSeq) < info.State.FirstSeq
		if sequence > 0 {
			at.sequence = sequence + 1
		}
		return nil
	})
	if err != nil {
		return beginning{}, fmt.Errorf("load floor: %w", err)
	}
	return at, nil
}

// last returns the message with the stored floor.
func (f floor) last(ctx context.Context) (*jetstream.RawStreamMsg, error) {
	s, err := f.bus.js.Stream(ctx, f.stream)
	if err != nil {
		return nil, err
	}
	return s.GetLastMsgForSubject(ctx, f.subject)
}

// number returns the stored floor, 0 if there is none, or if another client has deleted or overwritten it.
func number(stored *jetstream.RawStreamMsg) uint64 {
	if stored == nil {
		return 0
	}
	n, err := strconv.ParseUint(string(stored.Data), 10, 63)
	if err != nil {
		return 0
	}
	return n
}

// save stores the floor. An older one that comes late only lets more facts come again.
func (f floor) save(ctx context.Context, floor uint64) error {
	m := &nats.Msg{Subject: f.subject, Data: strconv.AppendUint(nil, floor, 10)}
	var ack *jetstream.PubAck
	err := f.bus.ask(ctx, requestTimeout, func(ctx context.Context) (err error) {
		ack, err = f.bus.js.PublishMsg(ctx, m, jetstream.WithExpectStream(f.stream))
		return err
	})
	if err != nil {
		f.bus.failed(f.stream, err)
		return fmt.Errorf("save floor: %w", err)
	}
	f.bus.top.confirmed(ack.Stream, ack.Sequence)
	return nil
}

// standsAlone reports whether the bus is one server, as of the last look, and not one of a cluster, whatever the replicas.
func (b *Bus) standsAlone() bool {
	b.top.mu.Lock()
	defer b.top.mu.Unlock()
	s := b.top.streams[b.names.facts()]
	return b.cfg.Replicas == 1 && s != nil && s.stream != nil && (s.info.Cluster == nil || s.info.Cluster.Name == "")
}
