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
	// factsAge is how long a fact is kept after it was published: long enough to look at yesterday, and for reconcilers
	// that were down over a weekend. Whoever was away for longer starts from a new list anyway.
	factsAge = 72 * time.Hour
	// dedupeWindow is how long two triggers, or one that starts again, may be apart and still publish as one. The server
	// keeps every id of the window in memory, about 150 bytes each.
	dedupeWindow = 10 * time.Minute
	// shortWindow is for streams where no message carries an id: as small as allowed costs nothing.
	shortWindow = time.Second
	// quarantineMessages and quarantineBytes bound what is set aside: enough to find a bug, too little to fill a disk.
	quarantineMessages = 1000
	quarantineBytes    = 256 << 20
	// DefaultStateBytes is what the memory of a function may take: three million Pods under way, at 170 bytes each, or the
	// small states of half a million Jobs (functions/job TestWhatAStateWeighs prints what they weigh).
	DefaultStateBytes = 512 << 20
	// timersBytes is room for 350,000 timers (TestWhatATimerWeighs prints what one weighs), of which a Job has five at most, and
	// usually one.
	timersBytes = 256 << 20
	// eventsWindow is how long an event that is announced again is recognised: for as long as somebody who has lost the memory
	// of it announces it again, and a while for what is still on its way then. Events are few beside facts: a million an hour take 150 MB of the server's memory.
	eventsWindow = events.ReannounceWindow + dedupeWindow
)

// streams are those that every bus has; beside them each function has its state.
func (b *Bus) streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{b.factsStream(), b.timersStream(), b.quarantineStream(), b.eventsStream()}
}

// factsStream holds what happened. Limits retention, because a server forgets message ids together with messages that
// were removed by an acknowledgement.
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

// timersStream holds the schedules and the messages of those that fired, which the server wants in one stream. Nothing in it expires: a
// timer for next year must survive, and so must a fired timer that nobody has heard yet (acknowledged ones: see purgeAcked). When it is full, the
// timers that were set longest ago go: to refuse new ones would stop all Jobs instead of delaying some until the next relist.
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
		AllowRollup:       true, // schedules imply it; said here so that the settings compare equal
		Duplicates:        shortWindow,
		Replicas:          b.cfg.Replicas,
		Storage:           jetstream.FileStorage,
	}
}

// quarantineStream holds what could not be read or borne.
func (b *Bus) quarantineStream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        b.names.quarantine(),
		Description: "jobstream: messages set aside in cluster " + b.cfg.Cluster,
		Subjects:    []string{b.names.quarantined()},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		MaxMsgs:     quarantineMessages,
		MaxBytes:    quarantineBytes,
		Duplicates:  dedupeWindow, // of two reconcilers that set the same message aside
		Replicas:    b.cfg.Replicas,
		Storage:     jetstream.FileStorage,
	}
}

// eventsStream holds what subscribers may read: the public events. Limits retention, so that any number of them can, each
// at a pace of its own, and again; none can make us wait, since the oldest go when it is full.
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

// stateStream is a key-value bucket made by hand, which `nats kv` can read: the client's own buckets answer reads from
// any replica, and measured on three of them one read in ten right after a write was stale. AllowDirect is off, so that
// every read comes from the leader. When it is full, the states that were written longest ago go, and each costs an inventory:
// memory may be lost. To refuse new ones, as the client's own buckets do, would stop all work.
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
		AllowMsgTTL:       true, // resting states, see restTTL. No delete markers: nobody watches, and they would outlive the state
		Duplicates:        shortWindow,
		Replicas:          b.cfg.Replicas,
		Storage:           jetstream.FileStorage,
	}
}

// firstSequence is where a new stream starts to count: the time in microseconds. A stream that was wiped and made again
// never hands out a sequence of its predecessor (unless that had taken more than a million writes a second all its
// life), and so no revision read from the old one passes the compare-and-set of the new one, and no late
// acknowledgement meets a message that it was not meant for. It stays below 2^53, so JSON in any language can hold it.
func firstSequence() uint64 { return uint64(time.Now().UnixMicro()) }

// ensure makes the stream, or brings the settings that we own in line, and returns what stands then.
func (b *Bus) ensure(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := b.stand(ctx, want)
	if err != nil {
		return nil, err
	}
	return b.align(ctx, s, want)
}

// stand makes the stream where there is none, and returns what stands then, with whatever settings.
func (b *Bus) stand(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	for {
		s, err := b.find(ctx, want.Name)
		switch {
		case err == nil:
			return s, nil
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return nil, fmt.Errorf("bus: stream %s: %w", want.Name, explain(err))
		}
		want.FirstSeq = firstSequence()
		s, err = b.create(ctx, want)
		switch {
		case err == nil:
			b.log.Info("stream made", "stream", want.Name)
			return s, nil
		case !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			return nil, fmt.Errorf("bus: make stream %s: %w", want.Name, explain(err))
		}
		// Somebody else made it between our two questions: look again, but not in a tight loop.
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("bus: make stream %s: %w", want.Name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
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

// align updates a stream whose settings are not ours, keeping whatever we have no opinion on.
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
