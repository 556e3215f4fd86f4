package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// reconciler is one process that takes turns.
type reconciler struct {
	world *World
	name  string
	// version is an index into the versions of the world.
	version int
	fns     map[string]fn.Registered
	skew    time.Duration // how far its clock is ahead of the cluster's
	// asleep is until when the process is stopped: it goes on with what it had in hand, and knows nothing of it.
	asleep time.Time
	hands  []*worker
	timers []*localTimer
	member *member // nil where everybody serves all partitions
}

// localTimer is what the process has set for a key: the timer on the bus, and its own beside it, which fires when
// that of the bus is ahead. It is the engine's Runner in this.
type localTimer struct {
	key   events.Key
	at    time.Time // zero once it has fired
	timer time.Time // what the timer on the bus was last set to
}

func (r *reconciler) clock() time.Time { return r.world.now.Add(r.skew) }

// takes says that the process may take a fact of the key in hand: the partition is its own, and it has not the key already.
func (r *reconciler) takes(key events.Key) bool {
	return !r.works(key) && (r.member == nil || r.member.serves(key))
}

// works says that there is a turn of the key.
func (r *reconciler) works(key events.Key) bool {
	return slices.ContainsFunc(r.hands, func(k *worker) bool { return k.stage != idle && k.turn.Key == key })
}

// newest says that the process knows of nobody who reads newer states.
func (r *reconciler) newest(function string) bool {
	return r.member != nil && r.member.table.Newest(function, r.fns[function].Version)
}

func (r *reconciler) timer(key events.Key) *localTimer {
	for _, a := range r.timers {
		if a.key == key {
			return a
		}
	}
	a := &localTimer{key: key}
	r.timers = append(r.timers, a)
	slices.SortFunc(r.timers, func(x, y *localTimer) int { return strings.Compare(x.key.String(), y.key.String()) })
	return a
}

// rested: when a turn is over and no alarm is set, the process forgets the key.
func (r *reconciler) rested(key events.Key) {
	r.timers = slices.DeleteFunc(r.timers, func(a *localTimer) bool { return a.key == key && a.at.IsZero() })
}

// setTimer sets the timer on the bus, unless it is the one that was set last, and an alarm in the process.
func (w *World) setTimer(ctx context.Context, k *worker, t effect.SetTimer) error {
	a, at := k.of.timer(k.turn.Key), t.At.Add(-k.of.skew)
	if a.at.IsZero() || at.Before(a.at) {
		a.at = at
	}
	if a.timer.Equal(t.At) {
		w.trace("%s has set the timer of %s for %s before", k, a.key, t.At.Format("15:04:05.000"))
		return nil
	}
	w.trace("%s sets the timer of %s for %s", k, a.key, t.At.Format("15:04:05.000"))
	a.timer = t.At
	return w.bus.Set(ctx, k.turn.Key, t.Name, t.At)
}

// firedEarly sets the timer on the bus once more where it has fired and the clock of the process says that it is too early, or
// where it has fired for the time before: its own alarm would die with it.
func (w *World) firedEarly(k *worker, key events.Key, facts []events.Event) {
	for _, e := range facts {
		if fired, ok := e.(events.TimerFired); ok && fired.Name != again && fired.Name != events.Unread {
			if at := k.of.timer(key).timer; at.After(k.of.clock()) {
				if early := fired.At.Sub(k.of.clock()); early > 0 {
					at = at.Add(early + time.Second)
				}
				_ = w.bus.Set(context.Background(), key, fired.Name, at) // never fails
			}
		}
	}
}

// wake begins a turn without a fact where an alarm of the process has fired.
func (w *World) wake(k *worker) bool {
	for _, a := range k.of.timers {
		if !a.at.IsZero() && !a.at.After(w.now) && !k.of.works(a.key) {
			a.at = time.Time{}
			w.turn(k, a.key)
			return true
		}
	}
	return false
}
