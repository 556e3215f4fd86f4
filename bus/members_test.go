package bus

import (
	"slices"
	"sync"
	"testing"

	"github.com/jobstream/jobstream/internal/lanes"
)

// heartbeats collects what a bus hears, as "member/number".
type heartbeats struct {
	mu    sync.Mutex
	heard []string
}

func (b *heartbeats) hear(beat lanes.Beat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, beat.Member)
}

func (b *heartbeats) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.heard)
}

func TestMembersHearEachOtherAndThemselves(t *testing.T) {
	t.Parallel()
	s := serve(t)
	one, two, stranger := connect(t, s), connect(t, s), connect(t, s, func(c *Config) { c.Cluster = "other" })
	var ones, twos, strangers heartbeats
	for b, hears := range map[*Bus]*heartbeats{one: &ones, two: &twos, stranger: &strangers} {
		stop, err := b.Beacon().Listen(hears.hear)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := b.nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.nc.Publish(one.names.members(), []byte("not a beat")); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*Bus{"one": one, "two": two, "stranger": stranger} {
		if err := b.Beacon().Send(lanes.Beat{Member: name, Number: 1}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "everybody has been heard", func() bool { return len(ones.names()) == 2 && len(twos.names()) == 2 && len(strangers.names()) == 1 })
	if got := strangers.names(); got[0] != "stranger" {
		t.Errorf("another cluster's beat was heard: %v", got)
	}
	s.Shutdown()
	until(t, "the connection is lost", func() bool { return one.Ready() != nil })
	if err := one.Beacon().Send(lanes.Beat{Member: "one"}); err == nil {
		t.Error("a beat without a connection is no error, and would arrive late")
	}
}
