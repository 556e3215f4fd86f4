package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

const (
	// lookEvery is how often an idle program checks that all streams still stand: one small request each. After an error it
	// checks at once.
	lookEvery = 5 * time.Second
	// lookAgain is the pause after a look that failed.
	lookAgain = 500 * time.Millisecond
	// shrunkAfter is how long a stream may seem to lack confirmed messages before they count as lost.
	shrunkAfter = 2 * time.Second
)

// topology knows which streams must stand and whether they do. It is the one place that recreates them and detects that facts may
// have been lost: a stream is gone, another program has recreated it meanwhile, or its last message is older than the last one
// that was confirmed to this program.
type topology struct {
	bus    *Bus
	poke   chan struct{} // look now
	losses chan struct{} // Losses

	mu      sync.Mutex
	streams map[string]*streamState
	broken  error                // why it does not stand
	lost    bool                 // a loss to signal once all stands again
	remade  chan struct{}        // closed and replaced whenever a stream was recreated
	missed  map[string]time.Time // of consumers with the mark missedFacts: when they were created
}

// streamState is a stream as of the last look.
type streamState struct {
	want    jetstream.StreamConfig
	stream  jetstream.Stream // nil until it has stood once
	created time.Time
	acked   uint64 // the last sequence that was confirmed to this program
	info    jetstream.StreamInfo
	// conflict describes the settings that differ from the flags, and remedy what to do about it; both are "" without a
	// difference.
	conflict, remedy string
}

func newTopology(b *Bus) *topology {
	return &topology{
		bus:     b,
		poke:    make(chan struct{}, 1),
		losses:  make(chan struct{}, 1),
		missed:  map[string]time.Time{},
		streams: map[string]*streamState{},
		remade:  make(chan struct{}),
	}
}

// build creates the streams of every bus. Work does not need the one of public events: if the server refuses to create it,
// because another stream has its subjects or it was sealed, build continues and a later look tries again.
func (t *topology) build(ctx context.Context) error {
	b := t.bus
	g, ctx := errgroup.WithContext(ctx)
	for _, want := range b.streams() {
		if !b.makes(want.Name) {
			t.miss(want, nil)
			continue
		}
		g.Go(func() error {
			_, err := t.add(ctx, want)
			if want.Name == b.names.events() && code(err) != 0 && !comingUp(err) {
				b.log.Warn("public events are not announced until their stream can be made", "err", err)
				t.miss(want, err)
				return nil
			}
			return err
		})
	}
	return g.Wait()
}

// miss keeps a stream that does not stand in the list, with the reason, if there is one.
func (t *topology) miss(want jetstream.StreamConfig, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[want.Name] = &streamState{want: want}
	if why != nil {
		t.broken = why
	}
}

// add creates the stream and keeps it alive from now on.
func (t *topology) add(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := t.bus.ensure(ctx, want)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := t.streams[want.Name]; have != nil {
		return have.stream, nil
	}
	t.streams[want.Name] = &streamState{want: want, stream: s, created: s.CachedInfo().Created, info: *s.CachedInfo()}
	return s, nil
}

// stands returns nil while the last look found everything in place.
func (t *topology) stands() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}

// changed returns a channel that is closed when a stream was recreated: the consumers of the old one are gone.
func (t *topology) changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remade
}

// look requests a look at all streams, now.
func (t *topology) look() {
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

// suspect requests a look if the error suggests that a stream is gone.
func (t *topology) suspect(err error) {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		t.look()
	}
}

// confirmed records that the server stored the message.
func (t *topology) confirmed(stream string, seq uint64) {
	t.bus.wrote(stream)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.streams[stream]; s != nil && seq > s.acked {
		s.acked = seq
	}
}

// lose records that facts may have been lost. Losses signals it once every stream that work needs stands again: publishing a
// list to a bus that is down would be in vain.
func (t *topology) lose() {
	t.mu.Lock()
	t.lost = true
	t.mu.Unlock()
	t.look()
}

// losing reports whether a loss has not been signalled yet.
func (t *topology) losing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}

// watch keeps the streams alive until the context ends.
func (t *topology) watch(ctx context.Context) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	evicted := time.NewTicker(evictedEvery)
	defer evicted.Stop()
	var behind bool
	for {
		select {
		case <-ctx.Done():
			return
		case <-evicted.C:
			behind = t.evicted(ctx, behind)
			continue
		case <-t.poke:
		case <-timer.C:
		}
		next := lookEvery
		if err := t.mend(ctx); err != nil {
			next = lookAgain
			if ctx.Err() == nil && t.bus.nc.IsConnected() {
				t.bus.throttled.warn("streams do not stand", "err", err)
			}
		}
		timer.Reset(next)
	}
}

// mend looks at every stream and recreates what is gone.
func (t *topology) mend(ctx context.Context) error {
	if !t.bus.nc.IsConnected() {
		err := fmt.Errorf("bus: %s is not connected", t.bus.cfg.where())
		t.mu.Lock()
		t.broken = err
		t.mu.Unlock()
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*requestTimeout)
	defer cancel()
	t.mu.Lock()
	all := make([]streamState, 0, len(t.streams))
	for _, s := range t.streams {
		all = append(all, *s) // a copy: the answer must contain all that was confirmed before the request
	}
	t.mu.Unlock()
	g, gctx := errgroup.WithContext(ctx)
	var beside error // about the streams that no work waits for
	var mu sync.Mutex
	for _, s := range all {
		g.Go(func() error {
			err := t.mendOne(gctx, s)
			if err != nil && !t.bus.names.works(s.want.Name) {
				mu.Lock()
				defer mu.Unlock()
				beside = errors.Join(beside, err)
				return nil
			}
			return err
		})
	}
	err := g.Wait()

	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = errors.Join(err, beside)
	if err == nil && t.lost && !t.bus.problems.kept(keyFull+t.bus.names.facts()) { // a list that cannot be stored would be lost, too
		t.lost = false
		select {
		case t.losses <- struct{}{}:
		default:
		}
	}
	return t.broken
}

func (t *topology) mendOne(ctx context.Context, was streamState) error {
	if !t.bus.makes(was.want.Name) {
		return t.glance(ctx, was)
	}
	info, err := (*jetstream.StreamInfo)(nil), error(jetstream.ErrStreamNotFound)
	if was.stream != nil {
		info, err = t.info(ctx, was)
	}
	if err == nil && info.Created.Equal(was.created) {
		t.saw(was.want.Name, info)
		if info.State.LastSeq < was.acked && t.shrunk(ctx, was) {
			t.lose()
		}
		return nil
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("bus: stream %s: %w", was.want.Name, explain(err))
	}
	stand := t.bus.stand // a stream that another program has recreated has that program's settings: see settings.go
	if was.stream == nil {
		stand = t.bus.ensure
	}
	s, err := stand(ctx, was.want)
	if err != nil {
		return err
	}
	if was.stream == nil {
		t.bus.log.Info("stream stands at last", "stream", was.want.Name)
	} else {
		t.bus.log.Warn("stream was lost and stands again", "stream", was.want.Name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := &streamState{want: was.want, stream: s, created: s.CachedInfo().Created, info: *s.CachedInfo(), conflict: was.conflict, remedy: was.remedy}
	t.settled(now)
	t.streams[was.want.Name] = now
	if t.bus.names.works(was.want.Name) { // the loss of other streams loses no facts
		t.lost = true
	}
	close(t.remade)
	t.remade = make(chan struct{})
	return nil
}

// saw records the result of a look.
func (t *topology) saw(stream string, info *jetstream.StreamInfo) {
	t.bus.ackGaps.answered(stream)
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.streams[stream]; s != nil {
		s.info = *info
		t.settled(s)
	}
}

func (t *topology) info(ctx context.Context, was streamState) (info *jetstream.StreamInfo, err error) {
	err = t.bus.ask(ctx, askTimeout, func(ctx context.Context) error { info, err = was.stream.Info(ctx); return err })
	return info, err
}

// shrunk reports whether the stream ends for good before a message that was confirmed to this program: a power failure lost what
// was not on the disk yet. A newly elected leader may need a moment to apply its log, so shrunk repeats the request until the
// leader has had time.
func (t *topology) shrunk(ctx context.Context, was streamState) bool {
	for deadline := time.Now().Add(shrunkAfter); ; {
		info, err := t.info(ctx, was)
		if err != nil || info.State.LastSeq >= was.acked {
			return false // another problem, or none: the next look will tell
		}
		if time.Now().After(deadline) {
			t.bus.log.Warn("stream has lost confirmed messages", "stream", was.want.Name, "last", info.State.LastSeq, "confirmed", was.acked)
			t.mu.Lock()
			t.streams[was.want.Name].acked = 0
			t.mu.Unlock()
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookAgain):
		}
	}
}

// Losses receives a signal when facts may have been lost: a publish failed for good, a stream disappeared, or the server was
// replaced by an empty one. Publishers must then list the cluster again. Signals coalesce, and arrive when the streams of facts,
// timers and states stand again, even while the others are still missing.
func (b *Bus) Losses() <-chan struct{} { return b.top.losses }
