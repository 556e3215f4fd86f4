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
	// HeartbeatInterval is the time between two regular heartbeats.
	HeartbeatInterval = 500 * time.Millisecond
	// resendAfter is how long a member waits for its own regular heartbeat to come back before it sends another. One at a time:
	// else a server that was stopped for a while returns forty heartbeats of this member before it returns one of another member.
	resendAfter = 2 * time.Second
	// isolatedAfter is how long our own heartbeats may stay away before Ready returns an error. A server that elects a leader or
	// restarts takes seconds.
	isolatedAfter = 15 * time.Second
	// joinTicks is the number of ticks before a member serves: by the second, every other member has answered the first.
	joinTicks = 2
)

// Transport carries heartbeats between the reconcilers of one cluster. It may lose some.
type Transport interface {
	// Send sends the heartbeat to all members, the sender included.
	Send(Heartbeat) error
	// Listen calls receive for every heartbeat, one after the other, until stop is called.
	Listen(receive func(Heartbeat)) (stop func(), err error)
}

// Config is what a Keeper needs; all fields but Fit and Changed are required.
type Config struct {
	// Member is the name of this process among all that serve the cluster: unique, and never used again.
	Member string
	// Versions is, by function, the version of the state that this process reads and writes, 1 or more. It serves these functions.
	Versions  map[string]int
	Transport Transport
	// Serve consumes the partition until its context ends, gives back what it has in hand, and returns. It runs on a goroutine of
	// its own, never twice at once for one partition.
	Serve func(ctx context.Context, function string, partition int)
	// Fit reports whether this process can do its work; it must not block. nil means always.
	Fit func() bool
	// Changed, if not nil, is called with the number of partitions of the function that this process serves, and of live members.
	Changed func(function string, partitions, members int)
	Log     *slog.Logger
}

// Keeper serves the partitions that are assigned to this process, as long as they are.
type Keeper struct {
	cfg        Config
	table      *Table
	serving    map[string]map[int]*service
	heartbeats chan Heartbeat
	over       chan *service
	tick       int       // of the last regular heartbeat
	sent       time.Time // when it was sent
	received   time.Time // when one of our own last came back
	isolated   atomic.Bool
	leaving    bool
	serial     uint64
	last       Heartbeat // what was sent last
	joined     atomic.Bool
	newest     atomic.Pointer[map[string]bool]
	shown      map[string][2]int
}

// service is one partition that this process serves.
type service struct {
	function  string
	partition int
	stop      context.CancelFunc
	stopping  bool
}

// NewKeeper returns a Keeper; Run makes it work.
func NewKeeper(cfg Config) *Keeper {
	if cfg.Fit == nil {
		cfg.Fit = func() bool { return true }
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string, int, int) {}
	}
	k := &Keeper{cfg: cfg, table: NewTable(cfg.Member), serving: map[string]map[int]*service{}, heartbeats: make(chan Heartbeat, 256),
		over: make(chan *service), shown: map[string][2]int{}}
	for f := range cfg.Versions {
		k.serving[f] = map[int]*service{}
	}
	return k
}

// Ready returns nil while this process takes part in the assignment and receives its own heartbeats; else its error names the
// cause and the remedy. It is for readiness probes.
func (k *Keeper) Ready() error {
	switch {
	case k.isolated.Load():
		return fmt.Errorf("no partitions are taken or given away: our own heartbeats have not come back to us for %v: may our NATS user still publish and subscribe to members.<cluster>?", isolatedAfter)
	case k.joined.Load():
		return nil
	}
	return errors.New("no partitions are served yet: our own heartbeats have not come back to us: may our NATS user publish and subscribe to members.<cluster>?")
}

// Newest reports whether no live member reads newer states of the function than this process does.
func (k *Keeper) Newest(function string) bool {
	known := k.newest.Load()
	return known != nil && (*known)[function]
}

// Run serves until ctx ends, and returns when all partitions have been released. It returns an error if it cannot listen.
func (k *Keeper) Run(ctx context.Context) error {
	done := make(chan struct{})
	defer close(done)
	stop, err := k.cfg.Transport.Listen(func(b Heartbeat) {
		select {
		case k.heartbeats <- b:
		case <-done:
		}
	})
	if err != nil {
		return fmt.Errorf("receive heartbeats of other reconcilers: %w", err)
	}
	defer stop()
	tick := time.NewTicker(HeartbeatInterval)
	defer tick.Stop()
	k.regular()
	for !k.leaving || k.busy() {
		select {
		case <-ctx.Done():
			ctx, k.leaving = context.WithoutCancel(ctx), true
		case b := <-k.heartbeats:
			k.receive(b)
		case s := <-k.over:
			delete(k.serving[s.function], s.partition)
			k.collectStopped()
		case <-tick.C:
			k.regular()
		}
		k.rebalance(ctx)
	}
	last := k.own()
	last.Gone = true
	k.send(last)
	return nil
}

// collectStopped notes all partitions that were released at the same time, so that one heartbeat says so.
func (k *Keeper) collectStopped() {
	for {
		select {
		case s := <-k.over:
			delete(k.serving[s.function], s.partition)
		default:
			return
		}
	}
}

func (k *Keeper) receive(b Heartbeat) {
	k.table.Receive(b)
	switch {
	case b.Member == k.cfg.Member:
		k.received = time.Now()
		k.isolated.Store(false)
		if k.table.Ticks() >= joinTicks {
			k.joined.Store(true)
		}
	case b.Probe:
		k.send(k.own())
	}
}

// own returns our heartbeat as of now.
func (k *Keeper) own() Heartbeat {
	b := Heartbeat{Member: k.cfg.Member, Tick: k.table.Ticks(), Versions: k.cfg.Versions, Holds: map[string]Set{}, Unfit: !k.cfg.Fit(),
		Serves: k.joined.Load() && !k.leaving}
	for f, partitions := range k.serving {
		for n := range partitions {
			b.Holds[f] |= One(n)
		}
	}
	return b
}

// regular sends the next regular heartbeat, unless the last one has not come back and may yet.
func (k *Keeper) regular() {
	k.isolated.Store(k.joined.Load() && time.Since(k.received) > isolatedAfter)
	b := k.own()
	if b.Tick < k.tick && time.Since(k.sent) < resendAfter {
		return
	}
	b.Tick++
	b.Probe = !k.joined.Load()
	k.tick, k.sent = b.Tick, time.Now()
	k.send(b)
}

func (k *Keeper) send(b Heartbeat) {
	k.serial++
	b.Serial = k.serial
	k.last = b
	if err := k.cfg.Transport.Send(b); err != nil {
		k.cfg.Log.Debug("heartbeat not sent", "error", err) // the bus logs that it is away
	}
}

// rebalance serves the partitions that are newly assigned to us, stops those that no longer are, and sends a heartbeat at once
// where another member may be waiting for it.
func (k *Keeper) rebalance(ctx context.Context) {
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
	if own = k.own(); own.Serves != k.last.Serves || own.Unfit != k.last.Unfit || !maps.Equal(own.Holds, k.last.Holds) {
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

// show reports how many partitions this process serves, where that has changed.
func (k *Keeper) show(function string) {
	now := [2]int{len(k.serving[function]), len(k.table.Live())}
	if now == k.shown[function] {
		return
	}
	k.shown[function] = now
	k.cfg.Changed(function, now[0], now[1])
	k.cfg.Log.Debug("partitions", "function", function, "serving", now[0], "members", now[1])
}
