package engine

import (
	"errors"
	"time"

	"github.com/jobstream/jobstream/events"
)

// errLeft ends a turn that lost its compare-and-set after its partition was released: the worker that won it serves the key now.
var errLeft = errors.New("another reconciler serves this partition")

// Take makes this runner serve the partition (0 to 31) again after a Release. At first it serves all. Keys whose turn has
// continued meanwhile lose their record of timers, since another reconciler may have set them.
func (r *Runner) Take(partition int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[partition] = false
	r.recent.DropPartition(partition)
	for _, k := range r.keys[partition] {
		k.timer = time.Time{}
	}
}

// Release stops serving the partition, so that another reconciler can; call it after the last Deliver. Facts that no turn has
// folded go back to the bus at once. Release waits for running turns, at most for the given time; what they commit later meets
// the compare-and-set. Wakeups in this process are stopped; timers on the bus reach the new owner.
func (r *Runner) Release(partition int, atMost time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[partition] = true
	r.recent.DropPartition(partition)
	for key, k := range r.keys[partition] {
		putBack(r.pick(key, k), 0)
		r.partFrom(key, k)
		k.wake = false
		r.clear(key, k)
	}
	r.await(atMost, func() bool {
		for _, k := range r.keys[partition] {
			if k.turning() {
				return false
			}
		}
		return true
	})
}

// Busy waits until no turn is running, at most for the given time, and returns the number of keys that still have one.
func (r *Runner) Busy(atMost time.Duration) (keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.await(atMost, func() bool {
		keys = 0
		for k := range r.states() {
			if k.turning() || k.part != nil {
				keys++
			}
		}
		return keys == 0
	})
	return keys
}

// await waits for the condition, which can change only when a turn ends. The mutex is held when it begins and ends.
func (r *Runner) await(atMost time.Duration, condition func() bool) {
	over := false
	timer := time.AfterFunc(atMost, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		over = true
		r.idle.Broadcast()
	})
	defer timer.Stop()
	for !condition() && !over {
		r.idle.Wait()
	}
}

// leaves reports whether the key's partition was released.
func (r *Runner) leaves(key events.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left[key.Partition()]
}

// turning reports whether a turn is running. A key that waits for its turn does not count: Release returns its facts.
func (k *keyState) turning() bool { return k.busy && !k.began.IsZero() }

// stopWakeup cancels the key's wakeup.
func (k *keyState) stopWakeup() {
	if k.wakeup != nil {
		k.wakeup.Stop()
		k.wakeup = nil
	}
}
