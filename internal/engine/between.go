package engine

import (
	"context"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// between is what happens between two rounds of a turn: after Pods were created, other turns go first, and then what has arrived
// for the key joins the turn and its batch. The error is errLeft if the partition was released meanwhile.
func (r *Runner) between(t *Turn, batch *[]Delivery) error {
	if slices.ContainsFunc(t.Effects(), effect.Begins) {
		t.waited += r.yield(t.Key)
		if r.leaves(t.Key) {
			return errLeft
		}
	}
	*batch = append(*batch, r.join(t)...)
	return nil
}

// yield lets other turns go first, and returns how long that took: a Pod that has just been created soon has more to tell, and one
// status write may then tell it all. Where no other turn waits, it returns at once.
func (r *Runner) yield(key events.Key) time.Duration {
	asked := time.Now()
	r.waits(key, asked, time.Time{})
	r.slots.Release(key.Namespace)
	_ = r.slots.Acquire(context.WithoutCancel(r.ctx), key.Namespace) // turns that hold a slot end soon, also at shutdown
	now := time.Now()
	r.waits(key, time.Time{}, now)
	return now.Sub(asked)
}

// waits records since when the key waits for its turn, or has it.
func (r *Runner) waits(key events.Key, asked, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(key)
	k.asked, k.began = asked, began
	r.idle.Broadcast()
}

// join folds into the turn what has arrived for its key since the last round, and returns these facts.
func (r *Runner) join(t *Turn) []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(t.Key)
	facts := make([]events.Event, len(k.waiting))
	for i, d := range k.waiting {
		facts[i] = d.Event()
	}
	if len(facts) == 0 || !t.Fold(facts...) {
		return nil
	}
	joined := r.pick(t.Key, k)
	k.working = append(slices.Clip(k.working), joined...)
	return joined
}
