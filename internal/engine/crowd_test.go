package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// beside returns keys in one partition, which is not that of key.
func beside(n int) (keys []events.Key) {
	for i := 0; len(keys) < n; i++ {
		k := events.Key{Function: "count", Namespace: "default", UID: types.UID(fmt.Sprint("beside-", i))}
		if k.Partition() == (key.Partition()+1)%events.Partitions {
			keys = append(keys, k)
		}
	}
	return keys
}

// A partition is crowded from 128 waiting facts on, and then makes room until no more than 64 wait.
func TestHowMuchRoomACrowdedPartitionMakes(t *testing.T) {
	for _, c := range []struct {
		name        string
		keys, facts int // and facts of each
		remembered  int // keys
	}{
		{"one fact less than a crowd", 1, 127, 0},
		{"a crowd of one key", 1, 128, 1},
		{"half of it makes enough room", 8, 16, 4},
		{"nearly half of it does not", 128, 1, 64},
		{"seven keys", 7, 20, 4}, // 140, 120, 100, 80, 60
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memories{all: map[events.Key]memory{}}
				b := start(t, counter(), func(c *engine.Config) { c.Store, c.Keys = m, 1 })
				release := b.blocked()
				b.Deliver(fact{b, "a"})
				b.await(t, "act RemoveFinalizer a")
				for _, k := range beside(c.keys) {
					for range c.facts {
						b.Deliver(factOf{fact{b, "crowd"}, k})
					}
				}
				<-time.After(250 * time.Millisecond)
				synctest.Wait()
				m.mu.Lock()
				remembered := len(m.all) - 1 // without that of the turn
				m.mu.Unlock()
				if remembered != c.remembered || b.count("ack crowd") != c.remembered*c.facts {
					t.Errorf("%d keys were remembered and %d facts acknowledged, want %d and %d", remembered, b.count("ack crowd"), c.remembered,
						c.remembered*c.facts)
				}
				release()
			})
		})
	}
}

// A crowd is given 100 ms to go away by itself, each time, even if its key has waited for longer: remembering costs more than waiting.
func TestWhenACrowdedPartitionMakesRoom(t *testing.T) {
	type at struct {
		time  time.Duration
		facts int // that come then
		acks  int // of those that came before
	}
	for name, steps := range map[string][]at{
		"a crowd that follows a trickle": {{0, 1, 0}, {time.Second, 1, 0}, {1050 * time.Millisecond, 128, 0}, {1120 * time.Millisecond, 0, 0}, {1160 * time.Millisecond, 0, 130}},
		"a crowd that follows a crowd": {{0, 128, 0}, {120 * time.Millisecond, 0, 0}, // at 100 ms its wait is not longer than that
			{220 * time.Millisecond, 0, 128}, {250 * time.Millisecond, 128, 128}, {320 * time.Millisecond, 0, 128}, {360 * time.Millisecond, 0, 256}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &memories{all: map[events.Key]memory{}}
				b := start(t, counter(), func(c *engine.Config) { c.Store, c.Keys = m, 1 })
				release := b.blocked()
				b.Deliver(fact{b, "a"})
				b.await(t, "act RemoveFinalizer a")
				began := time.Now()
				for _, s := range steps {
					<-time.After(time.Until(began.Add(s.time)))
					synctest.Wait()
					if n := b.count("ack crowd"); n != s.acks {
						t.Errorf("after %v %d facts are remembered, want %d", s.time, n, s.acks)
					}
					for range s.facts {
						b.Deliver(factOf{fact{b, "crowd"}, beside(1)[0]})
					}
				}
				release()
			})
		})
	}
}

// A turn that takes long costs the bus nothing while no fact waits for its key, and the facts of a key are remembered by one goroutine at
// a time.
func TestFactsAreRememberedOnceBesideATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, requests := make(chan struct{}), make(chan string, 100)
		b := start(t, counter(), broken(func(_ context.Context, request string) error {
			requests <- request
			if len(requests) == 3 { // after those of the turn
				<-gate
			}
			return nil
		}))
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		<-time.After(5 * time.Second)
		if b.count("timer again") > 0 || len(requests) != 2 {
			t.Errorf("with no fact that waits: %d requests, %q", len(requests), b.lines)
		}
		for _, name := range []string{"b", "c", "d"} {
			b.Deliver(fact{b, name})
			<-time.After(2 * time.Second)
		}
		if len(requests) != 3 {
			t.Errorf("%d requests although the first facts are still on their way", len(requests)-2)
		}
		close(gate)
		<-time.After(2 * time.Second)
		synctest.Wait()
		got := b.count("ack b") + b.count("ack c") + b.count("ack d")
		if got != 3 || b.count("ack a") > 0 {
			t.Errorf("%d of 3 facts were remembered: %q", got, b.lines)
		}
		release()
	})
}

// Facts that could not be remembered wait again, ahead of those that have come meanwhile.
func TestFactsThatCouldNotBeRememberedKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter(), failNth("load", 2, errors.New("the bus is away")))
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		for _, name := range []string{"b", "c"} {
			b.Deliver(fact{b, name})
		}
		<-time.After(1500 * time.Millisecond)
		if b.count("ack b")+b.count("nak b") > 0 {
			t.Errorf("got %q", b.lines)
		}
		b.Deliver(fact{b, "d"})
		<-time.After(3 * time.Second)
		synctest.Wait()
		b.mu.Lock()
		got := slices.DeleteFunc(slices.Clone(b.lines), func(line string) bool { return line[:3] != "ack" })
		b.mu.Unlock()
		if want := []string{"ack b", "ack c", "ack d"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		release()
	})
}
