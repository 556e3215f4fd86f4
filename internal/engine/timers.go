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

// ActorFunc makes an Actor of a function.
type ActorFunc func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error)

// Act implements Actor.
func (f ActorFunc) Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	return f(ctx, key, e)
}

// setTimer sets a timer on the bus, and an alarm in this process for the same time.
func (r *Runner) setTimer(ctx context.Context, key events.Key, timer effect.SetTimer) error {
	r.wakeIn(key, timer.At.Sub(r.cfg.Now()))
	if !r.noteTimer(key, timer.At, time.Time{}) { // Plan repeats itself; and a server whose clock is ahead would fire at once, again and again
		return nil
	}
	if err := r.cfg.Timers.Set(ctx, key, timer.Name, timer.At); err != nil {
		return err // it may have been set or not
	}
	r.noteTimer(key, timer.At, timer.At)
	return nil
}

// noteTimer notes for when the timer on the bus is set, the zero time where nobody knows; and answers whether it has yet to
// be set for the wanted time.
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

// firedEarly hears that a timer of a key has fired whose time has not come: remember has set it for sooner, it was set anew
// while it fired for the time before, or the server's clock is ahead of ours. Our alarm will fire, and would be all that is left
// if this process ended before. So it is set again; and where the server's clock is ahead, for when we are long done, or it
// would fire at once: as much later as it was early, and a second.
func (r *Runner) firedEarly(key events.Key, facts []events.Event) error {
	for _, e := range facts {
		fired, ok := e.(events.TimerFired)
		if !ok || fired.Name == events.Unread { // nobody has set that one for a time of ours
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

// until is how long it takes until the time comes for which the timer was set.
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

// forgetTimer is for a key that has no memory: where that was lost, the timer on the bus may be lost with it.
func (r *Runner) forgetTimer(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state(key).timer = time.Time{}
}

// wakeIn wakes the key after a while, in this process only. Of two alarms the earlier one stays: Plan sets the other
// again when it looks at the clock.
func (r *Runner) wakeIn(key events.Key, in time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
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

// rest makes the effects of the key rest after a failure, and returns for how long: as long as the answer asked, else 1 s
// doubling to 1 min while nothing at all succeeds.
func (r *Runner) rest(key events.Key, err error, done int) time.Duration {
	r.mu.Lock()
	k := r.state(key)
	if k.failed++; done > 0 {
		k.failed, k.inVain = 1, 0
	}
	after := backoff.API.Delay(k.failed)
	var retry Retry
	if newer := (fn.ErrNewer{}); errors.As(err, &newer) {
		after = newerRest
	} else if errors.As(err, &retry) && retry.After > 0 {
		after = retry.After
	}
	k.pause, k.backed = time.Now().Add(after), false
	r.mu.Unlock()
	r.wakeIn(key, after)
	return after
}

// comeBack sees to it that the bus wakes the key when its effects have rested, whoever has it then.
func (r *Runner) comeBack(key events.Key, after time.Duration) error {
	if err := r.cfg.Timers.Set(r.ctx, key, again, r.cfg.Now().Add(after)); err != nil {
		return err
	}
	r.back(key)
	return nil
}

// back notes that something on the bus wakes the key when its effects have rested.
func (r *Runner) back(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state(key).backed = true
}

// backUp makes good for a failure that has left no more than our alarm: before facts are acknowledged that wait for it.
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
