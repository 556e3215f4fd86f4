package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// Every is the time between two beats of a member while nothing changes.
	Every = 500 * time.Millisecond
	// lost is how long a member waits for its own beat to come back before it sends another: one at a time, so that a
	// server which was stopped for a while does not return forty of ours before it returns one of somebody else's.
	lost = 2 * time.Second
	// deafAfter is how long our own beats may stay away before we say that we are deaf: a server that chooses a leader, or
	// is started again, takes seconds.
	deafAfter = 15 * time.Second
	// joining is how many of its own beats a member hears before it serves: by the second, whoever is there has answered
	// the first.
	joining = 2
)

// Beacon carries beats between the members of one cluster. It may lose some.
type Beacon interface {
	// Send tells everybody, the sender too.
	Send(Beat) error
	// Listen calls hear for every beat, one after the other, until stop is called.
	Listen(hear func(Beat)) (stop func(), err error)
}

// Config is what a Keeper needs; all fields but Fit and Changed are required.
type Config struct {
	// Member is the name of this process among all that serve the cluster: unique, and never used again.
	Member string
	// Versions has the version of each function's state that this process reads and writes, 1 or more. It serves these
	// functions.
	Versions map[string]int
	Beacon   Beacon
	// Serve takes deliveries of the partition until its context ends, puts down what it has in hand, and returns. It runs on a
	// goroutine of its own, never twice at once for one partition.
	Serve func(ctx context.Context, function string, partition int)
	// Fit says whether this process can do its work; it must answer at once. nil means always.
	Fit func() bool
	// Changed, if not nil, hears how many partitions of the function this process serves, and how many members are live.
	Changed func(function string, partitions, members int)
	Log     *slog.Logger
}

// Keeper serves the partitions that are ours as long as they are.
type Keeper struct {
	cfg     Config
	table   *Table
	serving map[string]map[int]*service
	beats   chan Beat
	over    chan *service
	number  int       // of the last regular beat
	sent    time.Time // when it was sent
	echoed  time.Time // when one has last come back
	deaf    atomic.Bool
	leaving bool
	serial  uint64
	said    Beat // what was sent last
	joined  atomic.Bool
	newest  atomic.Pointer[map[string]bool]
	shown   map[string][2]int
}

// service is one partition in our hands.
type service struct {
	function  string
	partition int
	stop      context.CancelFunc
	stopping  bool
}

// NewKeeper returns a keeper that does nothing yet.
func NewKeeper(cfg Config) *Keeper {
	if cfg.Fit == nil {
		cfg.Fit = func() bool { return true }
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string, int, int) {}
	}
	k := &Keeper{cfg: cfg, table: NewTable(cfg.Member), serving: map[string]map[int]*service{}, beats: make(chan Beat, 256),
		over: make(chan *service), shown: map[string][2]int{}}
	for f := range cfg.Versions {
		k.serving[f] = map[int]*service{}
	}
	return k
}

// Ready is nil once we take part in the distribution, and while we hear ourselves; its error says what is in the way. For
// readiness probes.
func (k *Keeper) Ready() error {
	switch {
	case k.deaf.Load():
		return fmt.Errorf("no partitions are taken or given away: our own heartbeats have not come back to us for %v: may our NATS user still publish and subscribe to members.<cluster>?", deafAfter)
	case k.joined.Load():
		return nil
	}
	return errors.New("no partitions are served yet: our own heartbeats have not come back to us: may our NATS user publish and subscribe to members.<cluster>?")
}

// Newest says that no live member reads newer states of the function than we do.
func (k *Keeper) Newest(function string) bool {
	known := k.newest.Load()
	return known != nil && (*known)[function]
}

// Run serves until ctx ends, and returns when all partitions have been put down. Its error says that it could not listen.
func (k *Keeper) Run(ctx context.Context) error {
	done := make(chan struct{})
	defer close(done)
	stop, err := k.cfg.Beacon.Listen(func(b Beat) {
		select {
		case k.beats <- b:
		case <-done:
		}
	})
	if err != nil {
		return fmt.Errorf("hear other reconcilers: %w", err)
	}
	defer stop()
	tick := time.NewTicker(Every)
	defer tick.Stop()
	k.regular()
	for !k.leaving || k.busy() {
		select {
		case <-ctx.Done():
			ctx, k.leaving = context.WithoutCancel(ctx), true
		case b := <-k.beats:
			k.hear(b)
		case s := <-k.over:
			delete(k.serving[s.function], s.partition)
			k.gather()
		case <-tick.C:
			k.regular()
		}
		k.settle(ctx)
	}
	farewell := k.own()
	farewell.Gone = true
	k.send(farewell)
	return nil
}

// gather takes in all that has ended at the same time, so that it is told in one beat.
func (k *Keeper) gather() {
	for {
		select {
		case s := <-k.over:
			delete(k.serving[s.function], s.partition)
		default:
			return
		}
	}
}

func (k *Keeper) hear(b Beat) {
	k.table.Hear(b)
	switch {
	case b.Member == k.cfg.Member:
		k.echoed = time.Now()
		k.deaf.Store(false)
		if k.table.Echoes() >= joining {
			k.joined.Store(true)
		}
	case b.Asks:
		k.send(k.own())
	}
}

// own is what we say of ourselves now.
func (k *Keeper) own() Beat {
	b := Beat{Member: k.cfg.Member, Number: k.table.Echoes(), Versions: k.cfg.Versions, Holds: map[string]Set{}, Unfit: !k.cfg.Fit(),
		Serves: k.joined.Load() && !k.leaving}
	for f, partitions := range k.serving {
		for n := range partitions {
			b.Holds[f] |= One(n)
		}
	}
	return b
}

// regular sends the next regular beat, unless the last one has not come back and may yet.
func (k *Keeper) regular() {
	k.deaf.Store(k.joined.Load() && time.Since(k.echoed) > deafAfter)
	b := k.own()
	if b.Number < k.number && time.Since(k.sent) < lost {
		return
	}
	b.Number++
	b.Asks = !k.joined.Load()
	k.number, k.sent = b.Number, time.Now()
	k.send(b)
}

func (k *Keeper) send(b Beat) {
	k.serial++
	b.Serial = k.serial
	k.said = b
	if err := k.cfg.Beacon.Send(b); err != nil {
		k.cfg.Log.Debug("heartbeat not sent", "error", err) // the bus says itself that it is away
	}
}

// settle begins with the partitions that have become ours, ends those that are not ours any more, and says at once what others
// may be waiting for.
func (k *Keeper) settle(ctx context.Context) {
	own := k.own()
	newest := make(map[string]bool, len(k.serving))
	for _, f := range slices.Sorted(maps.Keys(k.serving)) {
		mine, free := k.table.Share(f, own)
		for partition, s := range k.serving[f] {
			if !mine.Has(partition) && !s.stopping {
				s.stopping = true
				s.stop()
			}
		}
		free.Each(func(partition int) {
			if k.serving[f][partition] == nil {
				k.begin(ctx, f, partition)
			}
		})
		newest[f] = k.table.Newest(f, k.cfg.Versions[f])
		k.show(f)
	}
	k.newest.Store(&newest)
	if own = k.own(); own.Serves != k.said.Serves || own.Unfit != k.said.Unfit || !maps.Equal(own.Holds, k.said.Holds) {
		k.send(own)
	}
}

func (k *Keeper) begin(ctx context.Context, function string, partition int) {
	ctx, stop := context.WithCancel(ctx)
	s := &service{function: function, partition: partition, stop: stop}
	k.serving[function][partition] = s
	go func() {
		defer stop()
		k.cfg.Serve(ctx, function, partition)
		k.over <- s
	}()
}

func (k *Keeper) busy() bool {
	for _, partitions := range k.serving {
		if len(partitions) > 0 {
			return true
		}
	}
	return false
}

// show says how many partitions we serve where that has changed.
func (k *Keeper) show(function string) {
	now := [2]int{len(k.serving[function]), len(k.table.Live())}
	if now == k.shown[function] {
		return
	}
	k.shown[function] = now
	k.cfg.Changed(function, now[0], now[1])
	k.cfg.Log.Debug("partitions", "function", function, "serving", now[0], "members", now[1])
}
