package partition

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// air carries heartbeats between keepers in one process as NATS does, in each sender's order, and can be cut for some.
type air struct {
	mu        sync.Mutex
	receivers map[string]chan Heartbeat
	mute      map[string]bool // its heartbeats reach no member, not even itself
	stopped   bool            // no heartbeat reaches any member
}

type antenna struct {
	*air
	member string
}

func (a antenna) Send(b Heartbeat) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, receive := range a.receivers {
		if !a.stopped && !a.mute[a.member] {
			receive <- b
		}
	}
	return nil
}

func (a antenna) Listen(receive func(Heartbeat)) (func(), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	queue := make(chan Heartbeat, 10_000)
	a.receivers[a.member] = queue
	go func() {
		for b := range queue {
			receive(b)
		}
	}()
	return func() { a.mu.Lock(); defer a.mu.Unlock(); delete(a.receivers, a.member); close(queue) }, nil
}

func (a *air) set(f func(*air)) { a.mu.Lock(); defer a.mu.Unlock(); f(a) }

// field is where keepers serve partitions; it counts every overlap.
type field struct {
	air
	t        *testing.T
	keepers  map[string]*Keeper
	servers  map[int]map[string]bool
	overlaps int
	slow     time.Duration // how long the release of a partition takes
}

func newField(t *testing.T) *field {
	return &field{air: air{receivers: map[string]chan Heartbeat{}, mute: map[string]bool{}}, t: t, keepers: map[string]*Keeper{}, servers: map[int]map[string]bool{}}
}

// join starts a member; leave asks it to go and waits until it has.
func (f *field) join(name string, version int) (leave func()) {
	k := NewKeeper(Config{Member: name, Versions: map[string]int{"job": version}, Transport: antenna{&f.air, name}, Log: slog.New(slog.DiscardHandler),
		Serve: func(ctx context.Context, _ string, partition int) {
			f.set(func(*air) {
				if f.servers[partition] == nil {
					f.servers[partition] = map[string]bool{}
				}
				f.servers[partition][name] = true
				if len(f.servers[partition]) > 1 {
					f.overlaps++
				}
			})
			<-ctx.Done()
			<-time.After(f.slow)
			f.set(func(*air) { delete(f.servers[partition], name) })
		}})
	f.keepers[name] = k
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := k.Run(ctx); err != nil {
			f.t.Error(err)
		}
	}()
	f.t.Cleanup(func() { cancel(); <-done })
	return func() { cancel(); <-done }
}

// shares checks after the given time how many partitions each member serves, as "a:16 b:16".
func (f *field) shares(after time.Duration, want string) {
	f.t.Helper()
	<-time.After(after)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	count := map[string]int{}
	for _, by := range f.servers {
		for m := range by {
			count[m]++
		}
	}
	got := ""
	for _, m := range []string{"a", "b", "c"} {
		if count[m] > 0 {
			got += fmt.Sprintf(" %s:%d", m, count[m])
		}
	}
	if got = got[min(1, len(got)):]; got != want {
		f.t.Errorf("partitions are served as %q, want %q", got, want)
	}
}

func TestMembersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		leaveA := f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		leaveB := f.join("b", 1)
		f.shares(2*HeartbeatInterval, "a:16 b:16")
		f.join("c", 1)
		f.shares(2*HeartbeatInterval, "a:10 b:11 c:11")
		leaveB()
		f.shares(0, "a:16 c:16")
		leaveA()
		f.shares(0, "c:32")
		if f.overlaps > 0 {
			t.Errorf("%d times a partition was served by two, although all heartbeats arrived", f.overlaps)
		}
	})
}

func TestAPartitionIsHandedOverOncePutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.slow = 200 * time.Millisecond
		f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		f.join("b", 1)
		f.shares(2*HeartbeatInterval+300*time.Millisecond, "a:16 b:16")
		if f.overlaps > 0 {
			t.Errorf("%d times a partition was taken before it was put down", f.overlaps)
		}
	})
}

func TestAMemberThatHangsIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.slow = time.Minute
		f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		f.join("b", 1)
		f.shares((joinTicks+HandoverTicks+2)*HeartbeatInterval, "a:32 b:16")
		f.shares(2*time.Minute, "a:16 b:16")
	})
}

func TestTheDeadAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		f.join("b", 1)
		f.shares(2*HeartbeatInterval, "a:16 b:16")
		f.set(func(x *air) { x.mute["b"] = true })
		f.shares((DeadAfter+2)*HeartbeatInterval, "a:32 b:16")
		if f.overlaps != 16 {
			t.Errorf("%d partitions were taken over", f.overlaps)
		}
	})
}

func TestABusThatPausesMovesNoPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		f.join("b", 1)
		f.shares(2*HeartbeatInterval, "a:16 b:16")
		f.set(func(x *air) { x.stopped = true })
		f.shares(time.Minute, "a:16 b:16")
		f.set(func(x *air) { x.stopped = false })
		f.shares(time.Minute, "a:16 b:16")
		if f.overlaps > 0 {
			t.Errorf("%d partitions were served by two", f.overlaps)
		}
	})
}

func TestARollingUpgradeAndItsRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		leaveA := f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		leaveB := f.join("b", 2)
		f.shares(2*HeartbeatInterval, "b:32")
		leaveA()
		f.join("c", 1)
		f.shares(2*HeartbeatInterval, "b:32")
		leaveB()
		f.shares(0, "c:32")
	})
}

// A member that no longer receives its own heartbeats keeps what it has, and is not ready.
func TestAMemberThatReceivesNothingIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newField(t)
		f.join("a", 1)
		f.shares(2*HeartbeatInterval, "a:32")
		k := f.keepers["a"]
		if err := k.Ready(); err != nil {
			t.Fatal(err)
		}
		f.set(func(x *air) { x.mute["a"] = true })
		f.shares(isolatedAfter/2, "a:32")
		if err := k.Ready(); err != nil {
			t.Errorf("a server that is started again makes a member deaf: %v", err)
		}
		f.shares(isolatedAfter, "a:32")
		if k.Ready() == nil {
			t.Error("deaf, and ready all the same")
		}
		f.set(func(x *air) { x.mute["a"] = false })
		f.shares(2*resendAfter, "a:32")
		if err := k.Ready(); err != nil {
			t.Errorf("it receives again: %v", err)
		}
	})
}

// What is known of other members before any has been heard is nothing: a state of a newer version is then not taken for one that a rollback left behind.
func TestNoFunctionIsNewestBeforeTheFirstHeartbeat(t *testing.T) {
	if k := NewKeeper(Config{Member: "a", Versions: map[string]int{"job": 1}}); k.Newest("job") {
		t.Error("it is")
	}
}
