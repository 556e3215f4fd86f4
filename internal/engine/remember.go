package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
)

const (
	// crowded is how many facts of one partition may lie before keys: half of what the bus delivers before it waits for us.
	crowded = 64
	// roomy is down to how many they are remembered: what costs the bus three requests for each key shall last for a while.
	roomy = crowded / 2
	// crowdedMax is how long keys of a crowded partition may wait for their turns. Those that are only next are no crowd.
	crowdedMax = 100 * time.Millisecond
)

// rememberWaiting folds what has arrived for keys whose turn has been going on for longer than a turn may: an API
// server or a webhook keeps it waiting. Their facts would otherwise fill the partition until nothing came through for any key.
func (r *Runner) rememberWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, key := range r.states() {
		if since(k.began, turnMax) {
			r.setAside(key, k)
		}
	}
}

// enqueue puts facts before the key. In a partition that is crowded by then, room is made soon.
func (r *Runner) enqueue(key events.Key, k *keyState, facts ...Delivery) {
	partition := key.Partition()
	k.waiting = append(k.waiting, facts...)
	if r.queued[partition] += len(facts); r.queued[partition] >= crowded && !r.clearing[partition] {
		r.clearing[partition] = true
		time.AfterFunc(crowdedMax, func() { r.makeRoom(partition) })
	}
}

// pick takes away what lies before the key.
func (r *Runner) pick(key events.Key, k *keyState) []Delivery {
	facts := k.waiting
	k.waiting = nil
	r.queued[key.Partition()] -= len(facts)
	return facts
}

// makeRoom folds what has arrived for keys of a crowded partition whose turns do not come, because their namespace has too much to
// do; those first that have the most. They would fill the partition as well. Where none is crowded, what waits costs nothing.
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
		return cmp.Compare(len(r.keys[partition][b].waiting), len(r.keys[partition][a].waiting))
	})
	for _, key := range waits {
		if r.queued[partition] > roomy {
			r.setAside(key, r.keys[partition][key])
		}
	}
	if r.queued[partition] >= crowded && r.ctx.Err() == nil {
		r.clearing[partition] = true
		time.AfterFunc(crowdedMax, func() { r.makeRoom(partition) })
	}
}

// setAside begins to remember what lies before the key.
func (r *Runner) setAside(key events.Key, k *keyState) {
	if len(k.waiting) == 0 || len(k.remembering) > 0 || r.ctx.Err() != nil {
		return
	}
	k.remembering = r.pick(key, k)
	r.done.Go(func() { r.remember(key, k) })
}

// since says that there was such a time, and more than that long ago.
func since(at time.Time, long time.Duration) bool { return !at.IsZero() && time.Since(at) > long }

// remember puts facts into the state beside the key's turn, which will find out by the compare-and-set, and acknowledges
// them. Nothing is done about them here: the next turn does, and a timer on the bus sees to it that there is one.
func (r *Runner) remember(key events.Key, k *keyState) {
	facts := k.remembering
	heard := make([]events.Event, len(facts))
	for i, d := range facts {
		heard[i] = d.Event()
	}
	t := NewTurn(r.cfg.Function, r.cfg.Store, key, heard...)
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
	default: // the next turn meets it too, and knows what to do
		r.enqueue(key, k, append(facts, r.pick(key, k)...)...)
	}
	if left {
		r.clear(key, k)
		return
	}
	k.wake = true
	r.start(key, k)
}
