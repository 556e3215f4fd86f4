package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/internal/engine"
	"github.com/jobstream/jobstream/internal/partition"
)

// handover is how long the new owner of a partition waits for the old owner's turns: most take milliseconds, and the
// compare-and-set stops the rest.
const handover = 100 * time.Millisecond

// MemberConfig is what a Member needs; Fit and Changed may be nil.
type MemberConfig struct {
	Bus *bus.Bus
	// Functions are served; Newest is filled in.
	Functions []engine.Config
	// Namespaces are those whose facts are processed; none means all.
	Namespaces []string
	// Fit reports whether this process can do its work.
	Fit func() bool
	// Changed receives how many partitions of the function this process serves, and how many members are live.
	Changed func(function string, partitions, members int)
	Log     *slog.Logger
}

// Member serves this process's share of all partitions: one engine for each function, and a keeper that tells them which partitions.
type Member struct {
	cfg     MemberConfig
	keeper  *partition.Keeper
	runners map[string]*engine.Runner
	stop    context.CancelFunc
}

// NewMember returns a member that does nothing before Run.
func NewMember(c MemberConfig) *Member {
	m := &Member{cfg: c, runners: map[string]*engine.Runner{}}
	versions := map[string]int{}
	for _, f := range c.Functions {
		versions[f.Function.Name] = f.Function.Version
	}
	m.keeper = partition.NewKeeper(partition.Config{Member: memberName(), Versions: versions, Transport: c.Bus.Members(), Serve: m.serve,
		Fit: c.Fit, Changed: c.Changed, Log: c.Log})
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	for _, f := range c.Functions {
		f.Newest = m.keeper.Newest
		m.runners[f.Function.Name] = engine.NewRunner(ctx, f)
	}
	return m
}

// Ready returns nil once this member takes part, and otherwise the reason why not.
func (m *Member) Ready() error { return m.keeper.Ready() }

// Run serves partitions until ctx ends. Then it hands over all of them at once, while running turns may continue for a while. The
// error means that the other members' heartbeats cannot be received.
func (m *Member) Run(ctx context.Context) error {
	err := m.keeper.Run(ctx)
	var all sync.WaitGroup
	for name, r := range m.runners {
		all.Go(func() {
			if keys := r.Busy(drainTimeout); keys > 0 {
				m.cfg.Log.Warn("turns were not finished in time; their facts will be delivered again", "function", name, "keys", keys)
			}
		})
	}
	all.Wait()
	m.stop()
	for _, r := range m.runners {
		r.Wait()
	}
	return err
}

// serve processes the facts of one partition until ctx ends, and hands it over.
func (m *Member) serve(ctx context.Context, function string, partition int) {
	r := m.runners[function]
	r.Take(partition)
	if err := m.cfg.Bus.Consume(ctx, function, []int{partition}, m.within(r.Deliver)); err != nil {
		m.cfg.Log.Error("partition is not served", "function", function, "partition", partition, "error", err)
		<-ctx.Done()
	}
	r.Release(partition, handover)
}

// within drops facts about other namespaces: those left over from a longer list of namespaces, or published by another program.
// They need no work.
func (m *Member) within(deliver func(engine.Delivery)) func(engine.Delivery) {
	if len(m.cfg.Namespaces) == 0 {
		return deliver
	}
	return func(d engine.Delivery) {
		if slices.Contains(m.cfg.Namespaces, d.Key().Namespace) {
			deliver(d)
			return
		}
		d.Ack()
	}
}

// memberName is unique to this process, and readable for people.
func memberName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "reconciler"
	}
	return fmt.Sprintf("%s-%s", host, rand.Text()[:8])
}
