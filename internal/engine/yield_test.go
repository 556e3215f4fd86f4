package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// A turn that lets others go first may wait for as long as the queue of its namespace is. Its facts are in the state, so they need not fill
// the partition meanwhile, of which the bus delivers 256 until some are acknowledged: facts of all other namespaces would wait, too.
func TestATurnThatLetsOthersGoFirstDoesNotFillItsPartition(t *testing.T) {
	for _, c := range []struct {
		name    string
		facts   int
		change  func(*bench)
		release bool
		want    string // what becomes of the facts within a second
		busy    int
	}{
		{name: "a few facts", facts: 127, want: "0 acknowledged, 0 given back, 0 timers", busy: 2},
		{name: "many", facts: 128, want: "128 acknowledged, 0 given back, 1 timers", busy: 2},
		{name: "many, and no timer can be set", facts: 128, change: func(b *bench) { b.timerless = true }, want: "0 acknowledged, 0 given back, 0 timers", busy: 2},
		{name: "another reconciler takes the partition", facts: 3, release: true, want: "0 acknowledged, 3 given back, 0 timers", busy: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two, gate := in("a", 1), in("a", 2), in("a", 3)
				b := startWith(t, creator(), 1, func(b *bench, key events.Key, e effect.Effect) engine.Answer {
					_, creates := e.(effect.CreatePod)
					switch {
					case key == gate:
						<-time.After(time.Millisecond)
					case key == one && creates:
						b.Deliver(observed(b, two, "other"))
						<-time.After(time.Millisecond) // the other key waits for its turn
					case key == two && creates:
						<-time.After(time.Minute)
					}
					return answered(e)
				})
				if c.change != nil {
					c.change(b)
				}
				b.Deliver(observed(b, gate, "created"))
				synctest.Wait()
				b.Deliver(observed(b, gate, "slow")) // has the turn until all facts are there
				synctest.Wait()
				for i := range c.facts {
					b.Deliver(observed(b, one, fmt.Sprint("p", i)))
				}
				<-time.After(500 * time.Millisecond)
				if c.release {
					b.Release(one.Partition(), 0)
				}
				<-time.After(500 * time.Millisecond)
				if got := fates(b); got != c.want {
					t.Errorf("%s, want %s: %q", got, c.want, b.lines)
				}
				if n := b.Busy(0); n != c.busy {
					t.Errorf("%d keys have a turn, want %d", n, c.busy)
				}
				<-time.After(2 * time.Minute) // what was acknowledged is not acknowledged again
				if got := fates(b); !c.release && !strings.HasPrefix(got, fmt.Sprintf("%d acknowledged, 0 given back", c.facts)) {
					t.Errorf("in the end %s", got)
				}
			})
		})
	}
}

// Which effects let others go first once they are done: those that create what soon has more to tell.
func TestWhatBegins(t *testing.T) {
	for _, c := range []struct {
		effect effect.Effect
		begins bool
	}{
		{effect.CreatePod{}, true}, {effect.CreateJob{}, true},
		{effect.WriteJobStatus{}, false}, {effect.WriteScheduleStatus{}, false}, {effect.TakeInventory{}, false}, {effect.DeleteRun{}, false},
	} {
		if got := effect.Begins(c.effect); got != c.begins {
			t.Errorf("%s begins something: %v", c.effect.Kind(), got)
		}
	}
}

// fates counts what became of the facts.
func fates(b *bench) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	acks, naks, timers := 0, 0, 0
	for _, line := range b.lines {
		switch {
		case strings.HasPrefix(line, "ack p"):
			acks++
		case strings.HasPrefix(line, "nak p"):
			naks++
		case line == "timer again":
			timers++
		}
	}
	return fmt.Sprintf("%d acknowledged, %d given back, %d timers", acks, naks, timers)
}
