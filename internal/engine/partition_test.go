package engine_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// blocked makes every effect wait until the returned function is called.
func (b *bench) blocked() (release func()) {
	gate := make(chan struct{})
	b.act = func(e effect.Effect) engine.Answer {
		<-gate
		return gone(e)
	}
	return func() { close(gate) }
}

func TestWhatNoTurnHasFoldedIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		b.Deliver(fact{b, "b"})
		b.Deliver(fact{b, "c"})
		b.Release(key.Partition(), time.Second)
		if b.count("nak b") != 1 || b.count("nak c") != 1 || b.count("ack a") > 0 {
			t.Errorf("the partition was released with %q", b.lines)
		}
		release()
		b.await(t, "ack a")
		synctest.Wait()
		if b.count("act RemoveFinalizer b") > 0 {
			t.Errorf("a turn was taken in a released partition: %q", b.lines)
		}
	})
}

func TestAPartitionIsPutDownAsSoonAsItsTurnsAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		time.AfterFunc(time.Second, release)
		began := time.Now()
		b.Release((key.Partition()+1)%32, time.Minute) // another key's partition
		if took := time.Since(began); took > 0 {
			t.Errorf("another partition was waited for: %v", took)
		}
		if keys := b.Busy(time.Millisecond); keys != 1 {
			t.Errorf("%d keys are busy", keys)
		}
		b.Release(key.Partition(), time.Minute)
		if took := time.Since(began); took < time.Second || took > 2*time.Second || b.count("ack a") != 1 {
			t.Errorf("released after %v: %q", took, b.lines)
		}
		if keys := b.Busy(0); keys != 0 {
			t.Errorf("%d keys are busy", keys)
		}
	})
}

// Busy returns as soon as no turn is running: a program that ends does not wait longer than it must.
func TestBusyWaitsForTurnsAndForNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		release, began := b.blocked(), time.Now()
		if keys := b.Busy(time.Minute); keys != 0 || time.Since(began) > 0 {
			t.Errorf("without a turn: %d keys after %v", keys, time.Since(began))
		}
		b.Deliver(fact{b, "a"})
		synctest.Wait()
		time.AfterFunc(time.Second, release)
		if keys := b.Busy(time.Minute); keys != 0 || time.Since(began) != time.Second {
			t.Errorf("with a turn of a second: %d keys after %v", keys, time.Since(began))
		}
	})
}

// TestATurnThatGoesOnAndOnIsContinued: its process may die before it wakes the key itself, so the bus has a timer for that.
func TestATurnThatGoesOnAndOnIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		next := map[string]string{"a": "b", "b": "c"}
		b.act = func(e effect.Effect) engine.Answer {
			<-time.After(7 * time.Second)
			a := gone(e)
			if name := next[e.(effect.RemoveFinalizer).Name]; name != "" {
				a.Facts = append(a.Facts, events.TimerFired{Name: name})
			}
			return a
		}
		b.Deliver(fact{b, "a"})
		<-time.After(time.Minute)
		b.await(t, "ack a")
		b.await(t, "act RemoveFinalizer c")
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if timer := slices.Index(b.lines, "timer again"); timer < 0 || timer > slices.Index(b.lines, "ack a") {
			t.Errorf("the fact was acknowledged before anything would continue the turn: %q", b.lines)
		}
	})
}

func TestAPartitionThatWasPutDownIsQuietUntilItIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		b.act = func(effect.Effect) engine.Answer {
			return engine.Answer{Err: engine.Retry{After: time.Second, Err: errors.New("the server asks for timeout")}}
		}
		b.Deliver(fact{b, "a"})
		b.await(t, "ack a")
		b.Release(key.Partition(), 0)
		b.Wake(key)
		<-time.After(time.Minute)
		if n := b.count("act RemoveFinalizer a"); n != 1 {
			t.Errorf("%d tries, although another reconciler has the partition", n)
		}
		b.Take(key.Partition())
		b.Wake(key)
		<-time.After(time.Minute)
		if n := b.count("act RemoveFinalizer a"); n < 3 {
			t.Errorf("%d tries after the partition was taken again", n)
		}
	})
}

func TestATurnThatLosesItsPartitionAndItsStateEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		b.mu.Lock()
		b.conflicts = 1 // the new owner has committed
		b.mu.Unlock()
		b.Release(key.Partition(), 0)
		release()
		b.await(t, "nak a")
		synctest.Wait()
		if b.count("commit") != 1 || b.count("conflict") != 1 {
			t.Errorf("got %q", b.lines)
		}
	})
}

func TestFactsAreRememberedBesideATurnThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, counter())
		release := b.blocked()
		b.Deliver(fact{b, "a"})
		b.await(t, "act RemoveFinalizer a")
		b.Deliver(fact{b, "b"})
		b.await(t, "ack b")
		if b.count("act RemoveFinalizer b") > 0 || b.count("timer again") != 1 || b.count("ack a") > 0 {
			t.Errorf("b was not only remembered: %q", b.lines)
		}
		release()
		b.await(t, "act RemoveFinalizer b")
		b.await(t, "ack a")
	})
}

func TestAStateThatARollbackHasLeftIsForgotten(t *testing.T) {
	b := start(t, counter(), func(c *engine.Config) { c.Newest = func(string) bool { return true } })
	b.act = gone
	b.mu.Lock()
	b.state, b.revision = newerState(t), 1
	b.mu.Unlock()
	b.Deliver(fact{b, "a"})
	b.await(t, "nak a")
	b.await(t, "timer again") // what the state had still to do may be in no fact that comes again
	b.await(t, "forget")
	b.Deliver(fact{b, "a"})
	b.await(t, "ack a")
	if b.count("act RemoveFinalizer a") != 1 {
		t.Errorf("got %q", b.lines)
	}
}
