package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
)

const (
	// crowded is how many facts of one partition may wait in the runner: half of what the bus delivers before it waits for
	// acknowledgements.
	crowded = 128
	// roomy is the number of waiting facts at which remembering stops: it costs the bus three requests for each key, so the room
	// should last for a while.
	roomy = crowded / 2
	// crowdedMax is how long keys of a crowded partition may wait for their turns. A shorter wait is no sign of a crowd.
	crowdedMax = 100 * time.Millisecond
)

// rememberWaiting folds the waiting facts of keys whose turn takes longer than a turn may, since an API server or a webhook
// delays it. Otherwise these facts would fill the partition and block every other key in it.
func (r *Runner) rememberWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, key := range r.states() {
		if since(k.began, turnMax) {
			r.setAside(key, k)
		}
	}
}

// enqueue adds facts to those that wait for the key.
func (r *Runner) enqueue(key events.Key, k *keyState, facts ...Delivery) {
	k.waiting = append(k.waiting, facts...)
	r.queue(key.Partition(), len(facts))
}

// hold makes so many facts of a turn that lets others go first count as queued.
func (r *Runner) hold(key events.Key, k *keyState, facts int) {
	change := facts - k.held
	k.held = facts
	r.queue(key.Partition(), change)
}

// queue changes how many facts of the partition count as queued. If it becomes crowded, makeRoom follows soon.
func (r *Runner) queue(partition, change int) {
	if r.queued[partition] += change; change > 0 && r.queued[partition] >= crowded && !r.clearing[partition] {
		r.clearing[partition] = true
		time.AfterFunc(crowdedMax, func() { r.makeRoom(partition) })
	}
}

// pick removes and returns the facts that wait for the key.
func (r *Runner) pick(key events.Key, k *keyState) []Delivery {
	facts := k.waiting
	k.waiting = nil
	r.queued[key.Partition()] -= len(facts)
	return facts
}

// makeRoom folds waiting facts in a crowded partition whose keys get no turn, because their namespace has used its share, and
// acknowledges those of turns that let others go first. It begins with the keys that have the most facts. Otherwise these facts
// would fill the partition, too. Where no partition is crowded, waiting costs nothing.
func (r *Runner) makeRoom(partition int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clearing[partition] = false
	if r.queued[partition] < crowded {
		return
	}
	var waits []events.Key
	for key, k := range r.keys[partition] {
		if since(k.asked, crowdedMax) {
			waits = append(waits, key)
		}
	}
	slices.SortFunc(waits, func(a, b events.Key) int {
		return cmp.Compare(r.keys[partition][b].queued(), r.keys[partition][a].queued())
	})
	for _, key := range waits {
		if k := r.keys[partition][key]; r.queued[partition] > roomy {
			r.setAside(key, k)
			r.partFrom(key, k)
		}
	}
	if r.queued[partition] >= crowded && r.ctx.Err() == nil {
		r.clearing[partition] = true
		time.AfterFunc(crowdedMax, func() { r.makeRoom(partition) })
	}
}

// setAside begins to remember the facts that wait for the key.
func (r *Runner) setAside(key events.Key, k *keyState) {
	if len(k.waiting) == 0 || len(k.remembering) > 0 || r.ctx.Err() != nil {
		return
	}
	k.remembering = r.pick(key, k)
	r.done.Go(func() { r.remember(key, k) })
}

// queued returns how many facts of the key count as queued.
func (k *keyState) queued() int { return len(k.waiting) + k.held }

// partFrom makes a turn that lets others go first give up its facts.
func (r *Runner) partFrom(key events.Key, k *keyState) {
	if k.part != nil && k.held > 0 {
		r.hold(key, k, 0)
		k.part()
	}
}

// since reports whether t is set and longer ago than d.
func since(at time.Time, long time.Duration) bool { return !at.IsZero() && time.Since(at) > long }

// remember folds facts into the state beside the key's turn, which will meet a conflict, and acknowledges them. It does no
// effects: the next turn does, and a timer on the bus ensures that there is one.
func (r *Runner) remember(key events.Key, k *keyState) {
	facts := k.remembering
	folded := make([]events.Event, len(facts))
	for i, d := range facts {
		folded[i] = d.Event()
	}
	t := NewTurn(r.cfg.Function, r.cfg.Store, key, folded...)
	err := t.Load(r.ctx)
	if err == nil {
		err = r.commit(t)
	}
	if err == nil {
		err = r.cfg.Timers.Set(r.ctx, key, again, r.cfg.Now().Add(turnMax))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.left[key.Partition()]
	k.remembering = nil
	switch {
	case err == nil:
		for _, d := range facts {
			d.Ack()
		}
	case left:
		putBack(facts, 0)
	default: // the next turn meets the same error and handles it
		r.enqueue(key, k, append(facts, r.pick(key, k)...)...)
	}
	if left {
		r.clear(key, k)
		return
	}
	k.wake = true
	r.start(key, k)
}
