package engine

import (
	"time"

	"github.com/jobstream/jobstream/events"
)

// rememberWaiting folds what has arrived for keys whose turn has been going on for longer than a turn may: an API server
// or a webhook keeps it waiting. Their facts would otherwise fill the lane until nothing came through for any key.
func (r *Runner) rememberWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, key := range r.desks() {
		slow := !k.began.IsZero() && time.Since(k.began) > turnMax
		if !slow || len(k.waiting) == 0 || len(k.remembering) > 0 || r.ctx.Err() != nil {
			continue
		}
		k.remembering, k.waiting = k.waiting, nil
		r.done.Go(func() { r.remember(key, k) })
	}
}

// remember puts facts into the state beside a running turn, which will find out by the compare-and-set, and acknowledges
// them. Nothing is done about them here: the next turn does, and a timer on the bus sees to it that there is one.
func (r *Runner) remember(key events.Key, k *desk) {
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
	left := r.left[key.Lane()]
	k.remembering = nil
	switch {
	case err == nil:
		for _, d := range facts {
			d.Ack()
		}
	case left:
		putBack(facts, 0)
	default: // the next turn meets it too, and knows what to do
		k.waiting = append(facts, k.waiting...)
	}
	if left {
		r.clear(key, k)
		return
	}
	k.wake = true
	r.start(key, k)
}
