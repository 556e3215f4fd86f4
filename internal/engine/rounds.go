package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

const (
	// effectsAtOnce is how many effects of one turn run at the same time on the cluster, and as many on the bus; the adapter
	// bounds all turns together.
	effectsAtOnce = 32

	// turnMax is how long a turn may go on with its own answers, and roomyTurnMax how long where its partition has room (see
	// goesOn). Its facts are then acknowledged, and the key takes its next turn: a Job that needs thousands of Pods does not hold
	// the facts of its partition.
	turnMax      = time.Second
	roomyTurnMax = 10 * time.Second

	// newerRest is how long a key backs off whose state a newer version wrote: by then a reconciler of that version has its
	// partition.
	newerRest = time.Second

	// again is the name of the engine's own timer of a key, which repeats effects that could not be done.
	again = "again"
)

// turn takes one turn. Its facts are acknowledged once they are in the state and their effects are done, or a timer on the bus
// ensures that they will be: facts that wait for an API server would block those of other keys. A quiet turn does no effects,
// since the last one has just failed; it only remembers facts.
func (r *Runner) turn(key events.Key, batch []Delivery, quiet bool) {
	began := time.Now()
	facts := make([]events.Event, len(batch))
	for i, d := range batch {
		facts[i] = d.Event()
	}
	t := NewTurn(r.cfg.Function, r.cfg.Store, key, facts...)
	done, err := 0, r.firedEarly(key, facts)
	if err == nil {
		done, err = r.run(t, &batch, quiet, began)
	}
	if err == nil && quiet {
		err = r.backUp(key)
	}
	var retry Retry
	if errors.As(err, &retry) {
		after := r.rest(key, retry, done-t.Wasted())
		if t.Wasted() > 0 {
			r.doubt(key)
		}
		err = r.comeBack(key, after) // if the bus fails, too, the facts go back to it
		if r.ctx.Err() == nil {
			r.cfg.Log.Warn("effects failed and will be repeated", "function", r.cfg.Function.Name, "key", key.String(), "after", after, "error", retry.Err)
		}
	} else if err == nil && !quiet {
		r.succeed(key)
	}
	r.settle(key, batch, err)
	if r.cfg.Turned != nil {
		if err == nil && retry.Err != nil {
			err = retry
		}
		r.cfg.Turned(Turned{Function: r.cfg.Function.Name, Key: key, Facts: facts, Rounds: t.rounds, Effects: done, Tried: t.tried,
			Duration: time.Since(began) - t.waited, Err: err})
	}
}

// settle acknowledges the facts of a turn, gives them back, or quarantines them.
func (r *Runner) settle(key events.Key, batch []Delivery, err error) {
	poisoned, newer := Poisoned{}, fn.ErrNewer{}
	switch {
	case err == nil:
		r.saved(key)
		for _, d := range batch {
			d.Ack()
		}
	case errors.As(err, &poisoned):
		r.quarantine(key, batch, poisoned)
	case errors.Is(err, errLeft):
		putBack(batch, 0)
	case errors.As(err, &newer) && r.cfg.Newest(r.cfg.Function.Name):
		r.rollBack(key, batch, newer)
	default:
		after, failed := r.restBus(key, err)
		putBack(batch, after)
		if r.ctx.Err() == nil && failed&(failed-1) == 0 { // the 1st, 2nd, 4th, 8th, … failure in a row
			r.cfg.Log.Warn("turn put back", "function", r.cfg.Function.Name, "key", key.String(), "after", after, "failed", failed, "error", err)
		}
	}
}

// rollBack deletes a state that a newer version has left behind, of which no reconciler is alive any more: the facts come again,
// and the bus wakes the key to take inventory, since what that state had still to do may be in none of them. The engine never
// interprets or overwrites what this version could not read.
func (r *Runner) rollBack(key events.Key, batch []Delivery, newer fn.ErrNewer) {
	after := time.Duration(0)
	err := r.comeBack(key, after)
	if err == nil {
		err = r.cfg.Store.Forget(r.ctx, key)
	}
	if err != nil {
		after, _ = r.restBus(key, err)
	} else {
		r.cfg.Log.Warn("state of a newer version forgotten, since no reconciler of it is alive; inventory follows",
			"function", r.cfg.Function.Name, "key", key.String(), "version", newer.Have, "known", newer.Want)
	}
	putBack(batch, after)
}

func putBack(batch []Delivery, after time.Duration) {
	for _, d := range batch {
		d.Nak(after)
	}
}

// run takes the steps of the turn until nothing is left to decide, and returns how many effects it did. It adds to the batch what
// it folds on the way. Its error is a Retry if the state holds all facts and some effects have to be repeated; any other error
// leaves open what the state holds.
func (r *Runner) run(t *Turn, batch *[]Delivery, quiet bool, began time.Time) (done int, err error) {
	if err := r.load(t); err != nil {
		return 0, err
	}
	for {
		if err := r.commit(t); err != nil {
			return done, err
		}
		if quiet {
			return done, nil
		}
		if t.Wasted() > 0 {
			if err := r.tell(t, began.Add(turnMax)); err != nil {
				return done, err
			}
			return done, Retry{Err: errInVain}
		}
		r.act(t, t.Effects())
		done += t.done
		retry := t.Err()
		if retry == nil && !t.Again() {
			return done, nil
		}
		took := time.Since(began) - t.waited
		if retry == nil && (took < turnMax || took < roomyTurnMax && r.goesOn(t)) {
			if err := r.between(t, batch, took >= turnMax); err != nil {
				return done, err
			}
			continue
		}
		if t.Again() { // remember the answers before another reconciler takes over
			if err := r.commit(t); err != nil {
				return done, err
			}
		}
		if retry == nil {
			r.Wake(t.Key)
			return done, r.cfg.Timers.Set(r.ctx, t.Key, again, r.cfg.Now().Add(turnMax))
		}
		return done, retry
	}
}

// commit decides on the newest state and saves the decision, again after each conflict.
func (r *Runner) commit(t *Turn) error {
	for {
		if err := t.Decide(r.cfg.Now()); err != nil {
			return err
		}
		err := t.Commit(r.ctx)
		if why := t.Forgot(); why != nil && err == nil {
			r.cfg.Log.Warn("the state is too large to be saved, or not valid: forgotten; inventory follows, later and later as long as it does not fit",
				"function", r.cfg.Function.Name, "key", t.Key.String(), "cause", why)
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if r.leaves(t.Key) {
			return errLeft
		}
		if err := r.load(t); err != nil {
			return err
		}
	}
}

// load reads the newest state. If it is lost, the timer on the bus may be lost with it.
func (r *Runner) load(t *Turn) error {
	if err := t.Load(r.ctx); err != nil {
		return err
	}
	if t.Lost() {
		r.forgetTimer(t.Key)
	}
	return nil
}

// act does effects of the decision, several at the same time.
func (r *Runner) act(t *Turn, effects []effect.Effect) {
	if len(effects) == 0 {
		return
	}
	t.try(effects)
	if r.cfg.Log.Enabled(r.ctx, slog.LevelDebug) {
		r.cfg.Log.Debug("turn", "function", r.cfg.Function.Name, "key", t.Key.String(), "revision", t.revision, "facts", len(t.folded), "effects", effects)
	}
	if effect.Shared(effects[0]) { // other turns share the request: let them ask; then this turn goes on before another begins
		r.slots.Release(t.Key.Namespace)
		defer func() { _ = r.slots.AcquireAhead(context.WithoutCancel(r.ctx), t.Key.Namespace) }() // turns that hold a slot end soon, also at shutdown
	}
	if len(effects) == 1 { // on this goroutine, whose stack has grown already
		t.Answer(t.Act(r.ctx, ActorFunc(r.perform), effects[0], r.cfg.Now()))
		return
	}
	answers := make([]Answer, len(effects))
	actor := untilRefused(r.perform)
	var both sync.WaitGroup
	for _, bus := range []bool{false, true} { // behind a thousand calls of the API server, effects on the bus would always be late
		both.Go(func() {
			var g errgroup.Group
			g.SetLimit(effectsAtOnce)
			for i, e := range effects {
				if ofBus(e) == bus {
					g.Go(func() error {
						answers[i] = t.Act(r.ctx, actor, e, r.cfg.Now())
						return nil
					})
				}
			}
			_ = g.Wait() // the goroutines return no errors: answers carry them
		})
	}
	both.Wait()
	for _, a := range answers {
		t.Answer(a)
	}
}

// ofBus reports whether the effect is done without the API server.
func ofBus(e effect.Effect) bool { return onBus(e) != nil }

// onBus returns how to do an effect on the bus, and nil for one on the cluster: the one place that knows which is which.
func onBus(e effect.Effect) func(context.Context, *Runner, events.Key) ([]events.Event, error) {
	switch e := e.(type) {
	case effect.SetTimer: // also in this process
		return func(ctx context.Context, r *Runner, key events.Key) ([]events.Event, error) {
			return nil, r.setTimer(ctx, key, e)
		}
	case effect.Announce:
		return func(ctx context.Context, r *Runner, key events.Key) ([]events.Event, error) {
			return r.announce(ctx, key, e), nil
		}
	case effect.ReportDropped:
		return func(_ context.Context, r *Runner, key events.Key) ([]events.Event, error) {
			return r.reportDropped(key, e), nil
		}
	}
	return nil
}

// perform does one effect.
func (r *Runner) perform(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	if do := onBus(e); do != nil {
		return do(ctx, r, key)
	}
	return r.cfg.Actor.Act(ctx, key, e)
}

// quarantine quarantines a poisoned fact. Of several facts it is unknown which one is poisoned, so they are given back and come
// one by one. The bus wakes the key afterwards: once the state is deleted, nothing else would start the inventory.
func (r *Runner) quarantine(key events.Key, batch []Delivery, cause Poisoned) {
	if len(batch) > 1 {
		for _, d := range batch {
			r.turn(key, []Delivery{d}, false)
		}
		return
	}
	after := r.rest(key, cause, 0)
	if err := r.comeBack(key, after); err != nil {
		putBack(batch, after)
		r.cfg.Log.Warn("fact cannot be quarantined yet", "function", r.cfg.Function.Name, "key", key.String(), "after", after, "error", errors.Join(cause, err))
		return
	}
	for _, d := range batch {
		d.Quarantine(cause)
	}
	r.cfg.Log.Error("fact quarantined and state forgotten; inventory follows", "function", r.cfg.Function.Name, "key", key.String(), "error", cause)
	if err := r.cfg.Store.Forget(r.ctx, key); err != nil {
		r.cfg.Log.Error("the state cannot be deleted", "key", key.String(), "error", err)
	}
}
