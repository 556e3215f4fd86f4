package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jobstream/jobstream/events"
)

const (
	// factsAge is how long a fact is kept: long enough to look at yesterday's, and for reconcilers that were down over a weekend.
	// After a longer absence they start from a new list anyway.
	factsAge = 72 * time.Hour
	// dedupeWindow is the longest time between two triggers' copies of a fact, or those of a trigger that restarts, in which the
	// server stores one. It keeps every id of the window in memory, about 150 bytes each.
	dedupeWindow = 10 * time.Minute
	// shortWindow is for streams whose messages carry no id: the shortest that the server allows.
	shortWindow = time.Second
	// quarantineMessages and quarantineBytes bound the quarantine: enough to find a bug, too little to fill a disk.
	quarantineMessages = 1000
	quarantineBytes    = 256 << 20
	// DefaultStateBytes bounds the memory of a function: three million Pods under way, at 170 bytes each, or the small states of
	// half a million Jobs (functions/job TestWhatAStateWeighs prints their sizes).
	DefaultStateBytes = 512 << 20
	// timersBytes is room for 350,000 timers (TestWhatATimerWeighs prints the size of one). A Job has five at most, and usually
	// one.
	timersBytes = 256 << 20
	// eventsWindow is how long an event that is announced again is recognised: for as long as a reconciler that has lost its
	// state announces it again, and some time for messages that are still on their way. Events are few beside facts: a million an
	// hour take 150 MB of the server's memory.
	eventsWindow = events.ReannounceWindow + dedupeWindow
)

// streams returns the streams of every bus; in addition each function has one for its state.
func (b *Bus) streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{b.factsStream(), b.timersStream(), b.quarantineStream(), b.eventsStream()}
}

// factsStream holds facts. Limits retention, because a server forgets message ids together with messages that an acknowledgement
// removed.
func (b *Bus) factsStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:             b.names.facts(),
		Description:      "jobstream: facts of cluster " + b.cfg.Cluster,
		Subjects:         []string{b.names.published()},
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: b.names.published(), Destination: b.names.stored()},
		Retention:        jetstream.LimitsPolicy,
		Discard:          jetstream.DiscardOld,
		MaxBytes:         b.cfg.MaxFactsBytes,
		MaxAge:           factsAge,
		Duplicates:       dedupeWindow,
		Replicas:         b.cfg.Replicas,
		Storage:          jetstream.FileStorage,
	}
}

// timersStream holds the schedules and the messages of those that fired; the server requires both in one stream. Nothing in it
// expires: a timer for next year must survive, and so must a fired timer that no reconciler has received yet (acknowledged ones:
// see purge). When it is full, the server drops the timers that were set longest ago: rejecting new ones would stop all Jobs
// instead of delaying some until the next relist.
func (b *Bus) timersStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              b.names.timers(),
		Description:       "jobstream: timers of cluster " + b.cfg.Cluster,
		Subjects:          []string{b.names.schedules(), b.names.fired()},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld, // schedules cannot be used with DiscardNew
		MaxBytes:          b.cfg.MaxTimersBytes,
		AllowMsgSchedules: true,
		AllowMsgTTL:       true,
		AllowRollup:       true, // schedules imply it; set so that the settings compare equal
		Duplicates:        shortWindow,
		Replicas:          b.cfg.Replicas,
		Storage:           jetstream.FileStorage,
	}
}

// quarantineStream holds messages that could not be read or that broke a function.
func (b *Bus) quarantineStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        b.names.quarantine(),
		Description: "jobstream: messages set aside in cluster " + b.cfg.Cluster,
		Subjects:    []string{b.names.quarantined()},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		MaxMsgs:     quarantineMessages,
		MaxBytes:    quarantineBytes,
		Duplicates:  dedupeWindow, // for two reconcilers that quarantine the same message
		Replicas:    b.cfg.Replicas,
		Storage:     jetstream.FileStorage,
	}
}

// eventsStream holds the public events for subscribers. Limits retention, so that any number of subscribers can read them, each
// at its own pace, and again; none can block jobstream, since the server drops the oldest when it is full.
func (b *Bus) eventsStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        b.names.events(),
		Description: "jobstream: public events of cluster " + b.cfg.Cluster,
		Subjects:    []string{b.names.announced()},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		MaxBytes:    b.cfg.MaxEventsBytes,
		MaxAge:      b.cfg.MaxEventsAge,
		Duplicates:  min(eventsWindow, b.cfg.MaxEventsAge), // the server remembers no id for longer than its message
		Replicas:    b.cfg.Replicas,
		Storage:     jetstream.FileStorage,
	}
}

// stateStream is a key-value bucket made by hand, which `nats kv` can read. The client's own buckets answer reads from any
// replica, and measured on three of them one read in ten right after a write was stale. AllowDirect is off, so that every read
// comes from the leader. When it is full, the server drops the states that were written longest ago, and each costs an inventory:
// memory may be lost. Rejecting new ones, as the client's own buckets do, would stop all work.
func (b *Bus) stateStream(function string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              b.names.state(function),
		Description:       "jobstream: state of function " + function + " in cluster " + b.cfg.Cluster,
		Subjects:          []string{b.names.values(function)},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxBytes:          b.cfg.MaxStateBytes,
		MaxMsgsPerSubject: 1, // history
		AllowRollup:       true,
		DenyDelete:        true,
		AllowDirect:       false,
		AllowMsgTTL:       true, // resting states, see restTTL. No delete markers: no client watches the bucket, and they would outlive the state
		Duplicates:        shortWindow,
		Replicas:          b.cfg.Replicas,
		Storage:           jetstream.FileStorage,
	}
}

// firstSequence returns the first sequence of a new stream: the time in microseconds. A stream that was wiped and recreated never
// repeats a sequence of its predecessor (unless that had taken more than a million writes a second all its life). So no revision
// read from the old one passes the compare-and-set of the new one, and no late acknowledgement matches a message that it was not
// meant for. It stays below 2^53, so JSON in any language can hold it.
func firstSequence() uint64 { return uint64(time.Now().UnixMicro()) }

// ensure creates the stream or updates the settings that jobstream owns, and returns the result.
func (b *Bus) ensure(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.stand(ctx, want)
	if err != nil {
		return nil, err
	}
	return b.align(ctx, s, want)
}

// stand creates the stream if there is none, and returns the existing one otherwise, with whatever settings.
func (b *Bus) stand(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	for {
		s, err := b.find(ctx, want.Name)
		switch {
		case err == nil:
			return s, nil
		case dropped(ctx, err):
			continue
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return nil, fmt.Errorf("bus: stream %s: %w", want.Name, explain(err))
		}
		want.FirstSeq = firstSequence()
		s, err = b.create(ctx, want)
		switch {
		case err == nil:
			b.log.Info("stream made", "stream", want.Name)
			return s, nil
		case dropped(ctx, err):
			continue
		case !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			return nil, fmt.Errorf("bus: make stream %s: %w", want.Name, explain(err))
		}
		// Another program created it between the two requests: look again, but not in a tight loop.
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("bus: make stream %s: %w", want.Name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// dropped reports whether the server dropped a request, as it does while a stream that another program has just created has no
// leader yet, and there is time to repeat it.
func dropped(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

func (b *Bus) find(ctx context.Context, name string) (s jetstream.Stream, err error) {
	err = b.ask(ctx, askTimeout, func(ctx context.Context) error { s, err = b.js.Stream(ctx, name); return err })
	return s, err
}

func (b *Bus) create(ctx context.Context, want jetstream.StreamConfig) (s jetstream.Stream, err error) {
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) error { s, err = b.js.CreateStream(ctx, want); return err })
	return s, err
}

func (b *Bus) update(ctx context.Context, want jetstream.StreamConfig) (s jetstream.Stream, err error) {
	err = b.ask(ctx, requestTimeout, func(ctx context.Context) error { s, err = b.js.UpdateStream(ctx, want); return err })
	return s, err
}

// align updates a stream whose settings differ, and keeps all settings that jobstream does not own.
func (b *Bus) align(ctx context.Context, s jetstream.Stream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	have := s.CachedInfo().Config
	merged, differs := merge(have, want)
	if !differs {
		return s, nil
	}
	s, err := b.update(ctx, merged)
	if err != nil {
		return nil, fmt.Errorf("bus: bring stream %s in line: %w", want.Name, explain(err))
	}
	b.log.Info("stream brought in line", "stream", want.Name, "was", texts(differences(have, merged)))
	return s, nil
}
