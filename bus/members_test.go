package bus

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/partition"
)

// heartbeats collects the heartbeats that a bus receives, as "member/number".
type heartbeats struct {
	mu       sync.Mutex
	received []string
}

func (b *heartbeats) receive(heartbeat partition.Heartbeat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.received = append(b.received, heartbeat.Member)
}

func (b *heartbeats) names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

func TestMembersReceiveEachOtherAndThemselves(t *testing.T) {
	t.Parallel()
	s := serve(t)
	one, two, stranger := connect(t, s), connect(t, s), connect(t, s, func(c *Config) { c.Cluster = "other" })
	var ones, twos, strangers heartbeats
	for b, receives := range map[*Bus]*heartbeats{one: &ones, two: &twos, stranger: &strangers} {
		stop, err := b.Members().Listen(receives.receive)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := b.nc.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.nc.Publish(one.names.members(), []byte("not a heartbeat")); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*Bus{"one": one, "two": two, "stranger": stranger} {
		if err := b.Members().Send(partition.Heartbeat{Member: name, Tick: 1}); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all have been received", func() bool { return len(ones.names()) == 2 && len(twos.names()) == 2 && len(strangers.names()) == 1 })
	if got := strangers.names(); got[0] != "stranger" {
		t.Errorf("another cluster's heartbeat was received: %v", got)
	}
	s.Shutdown()
	until(t, "the connection is lost", func() bool { return !one.nc.IsConnected() })
	if err := one.Members().Send(partition.Heartbeat{Member: "one"}); err == nil {
		t.Error("a heartbeat without a connection is no error, and would arrive late")
	}
}

// beatAs repeats the same heartbeat until the returned function is called.
func beatAs(t *testing.T, b *Bus, heartbeat partition.Heartbeat) (stop func()) {
	t.Helper()
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(partition.HeartbeatInterval / 5)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				_ = b.Members().Send(heartbeat) // the next one may get through
			}
		}
	}()
	return func() { close(over); <-done }
}
