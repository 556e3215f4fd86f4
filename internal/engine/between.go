package engine

import (
	"context"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// between is what happens between two rounds of a turn: after Pods were created, or if it is late, other turns go first, and then
// what has arrived for the key joins the turn and its batch. The error is errLeft if the partition was released meanwhile.
func (r *Runner) between(t *Turn, batch *[]Delivery, late bool) error {
	if late || slices.ContainsFunc(t.Effects(), effect.Begins) {
		t.waited += r.yield(t.Key, batch)
		if r.leaves(t.Key) {
			return errLeft
		}
	}
	*batch = append(*batch, r.join(t)...)
	return nil
}

// goesOn reports whether a turn that has taken turnMax goes on all the same: where few facts of its partition are unacknowledged, its own block no
// other key. To acknowledge them, it would have to set a timer on the bus, which is one more fact. Where an API server needs a second for three
// requests, each turn would. A turn that has met a conflict folds nothing that arrives, so it ends; and so does one whose partition was released, or
// whose process ends.
func (r *Runner) goesOn(t *Turn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	facts := 0
	for _, k := range r.keys[t.Key.Partition()] {
		facts += len(k.waiting) + len(k.working) + len(k.remembering)
	}
	return !t.contended && facts < crowded && !r.left[t.Key.Partition()] && r.ctx.Err() == nil
}

// yield lets other turns go first, and returns how long that took: a Pod that has just been created soon has more to tell, and one
// status write may then tell it all. Where no other turn waits, it returns at once.
//
// The wait may be long, and the facts of the turn count as waiting meanwhile: they are in the state. If they fill the partition, or it is
// released, they leave the batch (see part).
func (r *Runner) yield(key events.Key, batch *[]Delivery) time.Duration {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.ctx)) // turns that hold a slot end soon, also at shutdown
	defer cancel()
	asked := time.Now()
	k := r.steps(key, func(k *keyState) {
		k.asked, k.began, k.part = asked, time.Time{}, cancel
		r.hold(key, k, len(k.working))
	})
	r.slots.Release(key.Namespace)
	if r.slots.Acquire(ctx, key.Namespace) != nil {
		r.part(key, k, batch)
		_ = r.slots.Acquire(context.WithoutCancel(r.ctx), key.Namespace)
	}
	now := time.Now()
	r.steps(key, func(k *keyState) {
		k.asked, k.began, k.part = time.Time{}, now, nil
		r.hold(key, k, 0)
	})
	return now.Sub(asked)
}

// steps changes the state of a key whose turn lets others go first, or goes on.
func (r *Runner) steps(key events.Key, change func(*keyState)) *keyState {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(key)
	change(k)
	r.idle.Broadcast()
	return k
}

// part parts a turn that lets others go first from its facts, so that they do not fill their partition: it acknowledges them, since they are in
// the state, and a timer on the bus ensures that its effects are done. If the partition was released, its next owner gets them.
func (r *Runner) part(key events.Key, k *keyState, batch *[]Delivery) {
	switch {
	case r.leaves(key):
		putBack(*batch, 0)
	case r.cfg.Timers.Set(r.ctx, key, again, r.cfg.Now().Add(turnMax)) != nil:
		return
	default:
		for _, d := range *batch {
			d.Ack()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*batch, k.working = nil, nil
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
