package engine_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// timeout is the answer of a server that asks its clients to wait for a minute.
func timeout(effect.Effect) engine.Answer {
	return engine.Answer{Err: engine.Retry{After: time.Minute, Err: errors.New("the server asks its clients to wait")}}
}

// before reports whether the journal has one line before the other.
func (b *bench) before(one, other string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, j := slices.Index(b.lines, one), slices.Index(b.lines, other)
	return i >= 0 && i < j
}

// timersFail sets whether the bus rejects timers.
func (b *bench) timersFail(fail bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timerless = fail
}

// set returns how often the timer was set, and the time of the last.
func (b *bench) set(timer string) (times int, last time.Time) {
	times = b.count("timer " + timer)
	b.mu.Lock()
	defer b.mu.Unlock()
	return times, b.timer
}

// Only timers on the bus count: a wakeup in this process ends with the process, and with the partition.
func TestATimerThatCouldNotBeSetIsNotTakenForSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, waker(time.Now().Add(time.Hour)))
		b.timersFail(true)
		b.Deliver(fact{b, "a"})
		b.await(t, "nak a")
		synctest.Wait()
		b.timersFail(false)
		b.Deliver(fact{b, "a"})
		<-time.After(2 * time.Minute)
		if b.count("timer wake") != 1 {
			t.Errorf("the timer is not on the bus: %q", b.lines)
		}
	})
}

func TestAKeyWhoseStateIsForgottenIsWokenByTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		b.act = gone
		b.Deliver(fact{b, "poison"})
		b.await(t, "forget")
		if !b.before("timer again", "quarantine poison: true") {
			t.Errorf("no inventory is taken if this process ends: %q", b.lines)
		}
	})
}

func TestPoisonIsReturnedWhereNoInventoryWouldFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		b.timersFail(true)
		b.Deliver(fact{b, "poison"})
		b.await(t, "nak poison")
		synctest.Wait()
		if b.count("forget") > 0 || b.count("quarantine poison: true") > 0 {
			t.Errorf("got %q", b.lines)
		}
	})
}

// A server whose clock is ahead, or remember, makes the engine's timers fire while the key still backs off.
func TestTheEnginesOwnTimersAreSetAgainWhereTheyFireEarly(t *testing.T) {
	t.Run("again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t, counter())
			b.act = timeout
			b.Deliver(fact{b, "a"})
			b.await(t, "ack a")
			b.Deliver(fired{fact{b, "again"}, time.Now().Add(time.Minute)})
			b.await(t, "ack again")
			if n, at := b.set("again"); n != 2 || at.Before(time.Now().Add(time.Minute)) {
				t.Errorf("set %d times, at last for %v: %q", n, at, b.lines)
			}
		})
	})
}

// A turn that no fact had woken could not even set a timer. Facts that arrive during the backoff are remembered, and must not be
// acknowledged while only this process's wakeup would take care of them.
func TestNoFactIsAcknowledgedThatOnlyALocalWakeupCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		b.act = timeout
		b.Deliver(fact{b, "a"})
		b.await(t, "ack a")
		synctest.Wait()
		b.timersFail(true)
		<-time.After(time.Minute + time.Second) // the wakeup fires, and everything fails
		synctest.Wait()
		b.timersFail(false)
		b.mu.Lock()
		b.lines = nil
		b.mu.Unlock()
		b.Deliver(fact{b, "b"})
		b.await(t, "ack b")
		b.Deliver(fact{b, "c"})
		b.await(t, "ack c")
		if !b.before("timer again", "ack b") || b.count("timer again") != 1 {
			t.Errorf("got %q", b.lines)
		}
	})
}

// factOf is a fact of another key.
type factOf struct {
	fact
	key events.Key
}

func (f factOf) Key() events.Key { return f.key }

// others returns keys outside the partition of key.
func others(n int) (keys []events.Key) {
	for i := 0; len(keys) < n; i++ {
		if k := (events.Key{Function: "count", Namespace: "default", UID: types.UID(fmt.Sprint("other-", i))}); k.Partition() != key.Partition() {
			keys = append(keys, k)
		}
	}
	return keys
}

func TestAKeyThatWaitsForASlotDoesNotKeepAReleasedPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turned []events.Key
		b := start(t, counter(), func(c *engine.Config) {
			c.Keys = 1
			c.Turned = func(t engine.Turned) { turned = append(turned, t.Key) }
		})
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		waits := others(1)[0]
		b.Deliver(factOf{fact{b, "b"}, waits})
		synctest.Wait()
		began := time.Now()
		b.Release(waits.Partition(), time.Minute)
		if took := time.Since(began); took > 0 || b.count("nak b") != 1 {
			t.Errorf("released after %v: %q", took, b.lines)
		}
		if keys := b.Busy(0); keys != 1 {
			t.Errorf("%d keys are busy, one takes its turn", keys)
		}
		release()
		b.await(t, "ack a")
		synctest.Wait()
		if !slices.Equal(turned, []events.Key{key}) {
			t.Errorf("turns were taken by %v, although another reconciler has the partition of %v", turned, waits)
		}
	})
}

// Asking for more time costs as much as there are unacknowledged facts, not that times the number of keys: it happens under the
// engine's lock.
func TestAskingForMoreTimeIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000 // no partition is crowded
		b := start(t, counter(), func(c *engine.Config) { c.Keys = 1 })
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		for _, k := range others(keys) {
			b.Deliver(factOf{fact{b, "b"}, k})
		}
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		<-time.After(engine.AckWait / 3)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if each := (after.TotalAlloc - before.TotalAlloc) / keys; each > 1000 {
			t.Errorf("%d bytes for each of %d facts in hand", each, keys)
		}
		release()
	})
}

// A turn may outlast the release of its partition: when this runner serves it again, another one may have set the key's timer
// meanwhile.
func TestAPartitionTakenAgainDoesNotTrustItsTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Hour)
		f := fn.Register(fn.Function[string]{Name: "count", Version: 1,
			Observe: func(_ string, e events.Event) string {
				if gone, ok := e.(events.PodGone); ok {
					return "after " + gone.Pod.Name
				}
				return e.(events.TimerFired).Name
			},
			Plan: func(s string, _ time.Time) (string, []effect.Effect) {
				effects := []effect.Effect{effect.SetTimer{Name: "wake", At: at}}
				if s == "slow" {
					effects = append(effects, effect.RemoveFinalizer{Name: s})
				}
				return s, effects
			}})
		b := start(t, f)
		release := b.blocked()
		b.Deliver(fact{b, "first"})
		b.await(t, "ack first")
		b.Deliver(fact{b, "slow"})
		b.await(t, "act RemoveFinalizer slow")
		b.Release(key.Partition(), 0)
		b.Take(key.Partition())
		release()
		b.await(t, "ack slow")
		if n := b.count("timer wake"); n != 2 {
			t.Errorf("the timer was set %d times: %q", n, b.lines)
		}
	})
}
