package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// reconciler is one process.
type reconciler struct {
	world *World
	name  string
	// version is an index into the world's versions.
	version int
	fns     map[string]fn.Registered
	skew    time.Duration // how far its clock is ahead of the cluster's
	// asleep is until when the process is stopped. It then continues what it was doing, unaware of the pause.
	asleep time.Time
	hands  []*worker
	timers []*localTimer
	recent map[string]*engine.Recent // by function
	member *member                   // nil if every reconciler serves all partitions
}

// localTimer is the timer that the process has set for a key: the one on the bus, and one in the process that covers for a bus
// whose clock is behind. The engine's Runner works the same way.
type localTimer struct {
	key   events.Key
	at    time.Time // zero once it has fired
	timer time.Time // what the timer on the bus was last set to
}

// remembersNothing empties the process's memory of states, as at its start.
func (r *reconciler) remembersNothing() {
	r.recent = map[string]*engine.Recent{}
	for name := range r.fns {
		r.recent[name] = engine.NewRecent(r.world.bus)
	}
}

func (r *reconciler) clock() time.Time { return r.world.now.Add(r.skew) }

// takes reports whether the process may fetch facts of the key: it serves the partition and has no turn of the key.
func (r *reconciler) takes(key events.Key) bool {
	return !r.works(key) && r.serves(key)
}

// serves reports whether the facts of the key go to the process.
func (r *reconciler) serves(key events.Key) bool { return r.member == nil || r.member.serves(key) }

// works reports whether the process has a turn of the key.
func (r *reconciler) works(key events.Key) bool {
	return slices.ContainsFunc(r.hands, func(k *worker) bool { return k.stage != idle && k.turn.Key == key })
}

// newest reports whether the process knows of no reconciler that reads newer states.
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

// rested: the process forgets a key whose turn is over and that has no timer.
func (r *reconciler) rested(key events.Key) {
	r.timers = slices.DeleteFunc(r.timers, func(a *localTimer) bool { return a.key == key && a.at.IsZero() })
}

// setTimer sets the timer on the bus, unless it is already set to that time, and the one in the process.
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

// firedEarly sets the timer on the bus again if it fired too early by the clock of the process, or if it fired for an earlier
// setting. Otherwise only the timer in the process would be left, and end with it.
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

// wake starts a turn without a fact for a timer of the process that has fired.
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
