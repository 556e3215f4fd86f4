package engine

import (
	"errors"
	"time"

	"github.com/jobstream/jobstream/events"
)

// errLeft ends a turn that lost its compare-and-set after its partition had been left: whoever won it serves the key now.
var errLeft = errors.New("somebody else serves this partition")

// Take makes the partition (0 to 31) ours again after a Release. At first every partition is. Keys whose turn has gone on all the
// while do not know any more what somebody else has set their timers to.
func (r *Runner) Take(partition int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[partition] = false
	for _, k := range r.keys[partition] {
		k.timer = time.Time{}
	}
}

// Release puts the partition down for somebody else to serve; call it after the last Deliver. What no turn has folded goes
// back to the bus at once. Turns that run are waited for, but not longer than the given time: what they do later meets
// the compare-and-set. Alarms fall silent: those on the bus fire for everybody.
func (r *Runner) Release(partition int, atMost time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left[partition] = true
	for key, k := range r.keys[partition] {
		putBack(r.pick(key, k), 0)
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

// Busy waits until no turn is running, at most for the given time, and returns of how many keys one still is.
func (r *Runner) Busy(atMost time.Duration) (keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.await(atMost, func() bool {
		keys = 0
		for k := range r.states() {
			if k.turning() {
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

// leaves says that the key lies in a partition that we have left.
func (r *Runner) leaves(key events.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left[key.Partition()]
}

// turning says that a turn is running. A key that waits for its turn has nothing to put down: Release takes its facts away.
func (k *keyState) turning() bool { return k.busy && !k.began.IsZero() }

// stopWakeup stops the wakeup of the key.
func (k *keyState) stopWakeup() {
	if k.wakeup != nil {
		k.wakeup.Stop()
		k.wakeup = nil
	}
}
