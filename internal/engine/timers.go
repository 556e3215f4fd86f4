package engine

import (
	"context"
	"errors"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// ActorFunc is a function that implements Actor.
type ActorFunc func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error)

// Act implements Actor.
func (f ActorFunc) Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	return f(ctx, key, e)
}

// setTimer sets a timer on the bus, and a wakeup in this process for the same time.
func (r *Runner) setTimer(ctx context.Context, key events.Key, timer effect.SetTimer) error {
	r.wakeIn(key, timer.At.Sub(r.cfg.Now()))
	if !r.noteTimer(key, timer.At, time.Time{}) { // Plan repeats itself, and a server whose clock is ahead would fire at once, again and again
		return nil
	}
	if err := r.cfg.Timers.Set(ctx, key, timer.Name, timer.At); err != nil {
		return err // it may or may not have been set
	}
	r.noteTimer(key, timer.At, timer.At)
	return nil
}

// noteTimer records for when the timer on the bus is set, the zero time if that is unknown. It reports whether it still has to be
// set for the wanted time.
func (r *Runner) noteTimer(key events.Key, wanted, is time.Time) (differs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(key)
	if k.timer.Equal(wanted) {
		return false
	}
	k.timer = is
	return true
}

// firedEarly handles timers of a key that fired before their time: remember has set one for sooner, it was set again while it
// fired for its former time, or the server's clock is ahead of this one. The wakeup in this process will fire, and would be lost
// with the process, so firedEarly sets the timer on the bus again. If the server's clock is ahead, it adds the time by which the
// timer was early, and a second: otherwise it would fire at once, and so it fires long after the wakeup.
func (r *Runner) firedEarly(key events.Key, facts []events.Event) error {
	for _, e := range facts {
		fired, ok := e.(events.TimerFired)
		if !ok || fired.Name == events.Unread { // the bus sets that one for a time of its own
			continue
		}
		left, now := r.until(key, fired.Name), r.cfg.Now()
		if left <= 0 {
			continue
		}
		at := now.Add(left)
		if early := fired.At.Sub(now); early > 0 {
			at = at.Add(early + time.Second)
		}
		if err := r.cfg.Timers.Set(r.ctx, key, fired.Name, at); err != nil {
			return err
		}
	}
	return nil
}

// until returns how long it takes until the time for which the timer was set.
func (r *Runner) until(key events.Key, name string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch k := r.state(key); name {
	case again:
		return time.Until(k.pause)
	default:
		return k.timer.Sub(r.cfg.Now())
	}
}

// forgetTimer clears the record of a key's timer after its state was lost: the timer on the bus may be lost with it.
func (r *Runner) forgetTimer(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state(key).timer = time.Time{}
}

// wakeIn wakes the key after a while, in this process only. An earlier wakeup stays: Plan sets the other again when it looks at
// the clock.
func (r *Runner) wakeIn(key events.Key, in time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setWakeup(key, in)
}

// setWakeup is wakeIn with the mutex held.
func (r *Runner) setWakeup(key events.Key, in time.Duration) {
	if r.left[key.Partition()] {
		return
	}
	k, at := r.state(key), time.Now().Add(in)
	if k.wakeup != nil {
		if k.wakesAt.Before(at) {
			return
		}
		k.wakeup.Stop()
	}
	var wakeup *time.Timer
	wakeup = time.AfterFunc(max(in, 0), func() {
		r.mu.Lock()
		if k.wakeup == wakeup {
			k.wakeup = nil
		}
		r.mu.Unlock()
		r.Wake(key)
	})
	k.wakeup, k.wakesAt = wakeup, at
}

// busRest is the delay of a turn that the bus failed. It says nothing about the key: the bus fails all of them, and once it works
// again none should wait for long.
var busRest = backoff.Policy{Base: time.Second, Max: 4 * time.Second}

// rest makes the effects of the key back off after a failure of them, or of a fact, and returns for how long: as long as the answer
// asked, otherwise 1 s doubling to 1 min while nothing at all succeeds.
func (r *Runner) rest(key events.Key, err error, done int) (after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(key)
	if k.failed++; done > 0 {
		k.failed, k.inVain = 1, 0
	}
	after = backoff.API.Delay(k.failed)
	if retry := (Retry{}); errors.As(err, &retry) && retry.After > 0 {
		after = retry.After
	}
	k.pause, k.backed = time.Now().Add(after), false
	r.setWakeup(key, after)
	return after
}

// restBus makes the key back off after its state could not be read or saved, and returns for how long, and how many turns in a row
// the bus has failed. Effects that back off for longer go on doing so. The facts of the turn are given back for that time, but may
// come earlier, if the bus never learns of that.
func (r *Runner) restBus(key events.Key, err error) (after time.Duration, failed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(key)
	k.unsaved++
	after = busRest.Delay(k.unsaved)
	if newer := (fn.ErrNewer{}); errors.As(err, &newer) {
		after = newerRest
	}
	if until := time.Now().Add(after); until.After(k.pause) {
		k.pause, k.backed = until, false
	}
	r.setWakeup(key, after)
	return after, k.unsaved
}

// comeBack sets a timer on the bus that wakes the key, with any owner, when its effects have backed off.
func (r *Runner) comeBack(key events.Key, after time.Duration) error {
	if err := r.cfg.Timers.Set(r.ctx, key, again, r.cfg.Now().Add(after)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state(key).backed = true
	return nil
}

// backUp sets the timer on the bus that is missing if a failure has left only the wakeup in this process: before facts are
// acknowledged that wait for it.
func (r *Runner) backUp(key events.Key) error {
	r.mu.Lock()
	k := r.state(key)
	backed, rest := k.backed, time.Until(k.pause)
	r.mu.Unlock()
	if backed {
		return nil
	}
	return r.comeBack(key, max(0, rest))
}

func (r *Runner) succeed(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.state(key)
	k.failed, k.inVain = 0, 0
}

// saved records that the bus has not failed the key's turn.
func (r *Runner) saved(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state(key).unsaved = 0
}
