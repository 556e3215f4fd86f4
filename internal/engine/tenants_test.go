package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// memories is a Store of many keys.
type memories struct {
	mu  sync.Mutex
	all map[events.Key]memory
}

type memory struct {
	state    []byte
	revision uint64
}

func (m *memories) Load(_ context.Context, key events.Key) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[key].state, m.all[key].revision, nil
}

func (m *memories) Save(_ context.Context, key events.Key, data []byte, revision uint64, _ bool) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all[key].revision != revision {
		return 0, engine.ErrConflict
	}
	m.all[key] = memory{data, revision + 1}
	return revision + 1, nil
}

func (m *memories) Forget(context.Context, events.Key) error { return nil }

// remembers reports whether the key's state contains the word.
func (m *memories) remembers(key events.Key, word string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Contains(string(m.all[key].state), word)
}

// startTenants runs turns of many namespaces; the API server never answers those of "greedy".
func startTenants(t *testing.T) (*bench, *memories) {
	m := &memories{all: map[events.Key]memory{}}
	b := start(t, counter(), func(c *engine.Config) {
		c.Store = m
		actor := c.Actor
		c.Actor = engine.ActorFunc(func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
			if key.Namespace == "greedy" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return actor.Act(ctx, key, e)
		})
	})
	b.act = gone
	return b, m
}

// in returns a key of a namespace.
func in(namespace string, i int) events.Key {
	return events.Key{Function: "count", Namespace: namespace, UID: types.UID(fmt.Sprint(namespace, "-", i))}
}

// A namespace that uses all the turns it may have does not use those of others.
func TestATenantThatHangsKeepsNoTurnFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := startTenants(t)
		for i := range 1000 {
			b.Deliver(factOf{fact{b, "a"}, in("greedy", i)})
		}
		synctest.Wait()
		if n := b.Busy(0); n < 48 || n > 63 {
			t.Errorf("%d turns of the greedy namespace run: it shall have most of 64, and not all", n)
		}
		began := time.Now()
		b.Deliver(factOf{fact{b, "quick"}, in("quiet", 0)})
		b.await(t, "ack quick")
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("a newcomer waited for %v", took)
		}
	})
}

// A partition has room again soon, however many facts come for keys that cannot have a turn: the bus delivers 256 and then waits.
// Remembered facts leave the partition, and if this process died, a timer would wake the key's next owner.
func TestACrowdedPartitionHasRoomSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := startTenants(t)
		for i := range 100 {
			b.Deliver(factOf{fact{b, "a"}, in("greedy", i)})
		}
		synctest.Wait()
		began := time.Now()
		waits := in("greedy", 100)
		for i := range 256 {
			b.Deliver(factOf{fact{b, fmt.Sprint("crowd-", i)}, waits})
		}
		b.await(t, "ack crowd-255")
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("the partition was full for %v", took)
		}
		if !m.remembers(waits, "crowd-255") || !b.before("timer again", "ack crowd-0") {
			t.Errorf("facts are acknowledged and nothing would wake their key: %q", b.lines)
		}
	})
}

// Remembering costs the bus more than waiting does: three requests for each key. It happens only in a crowded partition, and
// begins with the keys that have the most facts.
func TestAKeyThatWaitsWithFewFactsIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, m := startTenants(t)
		for i := range 800 { // 26 in the partition of much: if all of them wait, that is still room enough
			b.Deliver(factOf{fact{b, "a"}, in("greedy", i)})
		}
		synctest.Wait()
		much := in("greedy", 1000)
		for range 256 {
			b.Deliver(factOf{fact{b, "much"}, much})
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
		if n := b.Busy(0); len(m.all) != n+1 || !m.remembers(much, "much") {
			t.Errorf("%d states, want those of %d running turns and the one that crowds its partition", len(m.all), n)
		}
	})
}
