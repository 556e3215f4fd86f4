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

// handover is how long somebody else waits for the turns of a partition that is theirs by now: most take milliseconds, and
// what the others still do meets the compare-and-set.
const handover = 100 * time.Millisecond

// MemberConfig is what a Member needs; Fit and Changed may be nil.
type MemberConfig struct {
	Bus *bus.Bus
	// Functions are served; Newest is filled in.
	Functions []engine.Config
	// Namespaces are those whose facts are taken; none means all.
	Namespaces []string
	// Fit says whether this process can do its work.
	Fit func() bool
	// Changed hears how many partitions of the function this process serves, and how many members are live.
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

// Ready is nil once we take part; its error says what is in the way.
func (m *Member) Ready() error { return m.keeper.Ready() }

// Run serves partitions until ctx ends. Then all are given away at once, and turns that run may go on for a while. Its error
// says that the other members cannot be heard.
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

// serve takes the facts of one partition until ctx ends, and puts it down.
func (m *Member) serve(ctx context.Context, function string, partition int) {
	r := m.runners[function]
	r.Take(partition)
	if err := m.cfg.Bus.Consume(ctx, function, []int{partition}, m.within(r.Deliver)); err != nil {
		m.cfg.Log.Error("partition is not served", "function", function, "partition", partition, "error", err)
		<-ctx.Done()
	}
	r.Release(partition, handover)
}

// within lets nothing pass that is about another namespace: what was left behind when there were more of them, or what somebody
// else has published. Nobody has to do anything about it.
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

// memberName is unique to this process, and tells people which one it is.
func memberName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "reconciler"
	}
	return fmt.Sprintf("%s-%s", host, rand.Text()[:8])
}
