package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Config is what a Runner needs. All fields but Turned are required, except where a default is named.
type Config struct {
	Function fn.Registered
	Store    Store
	Actor    Actor
	Timers   Timers
	Log      *slog.Logger
	// Keys is how many keys take their turns at once; default 64.
	Keys int
	// Now is the clock; default time.Now. Tests offset it.
	Now func() time.Time
	// Turned, if not nil, hears of every finished turn, for metrics.
	Turned func(Turned)
}

// Turned is one finished turn.
type Turned struct {
	Function string
	Key      events.Key
	// Facts is how many deliveries it folded, Rounds how often it decided, Effects how many it did.
	Facts, Rounds, Effects int
	Duration               time.Duration
	// Err is why the facts go back to the bus; nil where they were acknowledged.
	Err error
}

// effectsAtOnce is how many effects of one turn run at the same time; the adapter bounds all turns together.
const effectsAtOnce = 32

// nearby is how soon a timer must be due to be kept in this process as well as on the bus, whose timers are coarse.
const nearby = 5 * time.Second

// Runner takes turns for many keys: never two of one key at once, and for each all that has arrived for it together.
type Runner struct {
	cfg   Config
	slots chan struct{}
	mu    sync.Mutex
	keys  map[events.Key]*desk
	done  sync.WaitGroup
	ctx   context.Context
}

// desk is what lies before one key: facts that wait, facts in the running turn, and its nearest local alarm.
type desk struct {
	waiting []Delivery
	working []Delivery
	busy    bool
	wake    bool
	alarm   *time.Timer
	rings   time.Time // when alarm does
	failed  int       // turns in a row that were put back
}

// NewRunner returns a Runner that takes deliveries until ctx ends; Wait returns once it has put everything down.
func NewRunner(ctx context.Context, cfg Config) *Runner {
	if cfg.Keys <= 0 {
		cfg.Keys = 64
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	r := &Runner{cfg: cfg, slots: make(chan struct{}, cfg.Keys), keys: map[events.Key]*desk{}, ctx: ctx}
	r.done.Go(r.keepAlive)
	return r
}

// Wait returns when ctx has ended and no turn is running. What was not finished is delivered again, to somebody.
func (r *Runner) Wait() { r.done.Wait() }

// Deliver takes a fact; it never blocks. The turn that folds it acknowledges it or gives it back.
func (r *Runner) Deliver(d Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.desk(d.Key())
	k.waiting = append(k.waiting, d)
	r.start(d.Key(), k)
}

// Wake makes the key take a turn without a new fact.
func (r *Runner) Wake(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.desk(key)
	k.wake = true
	r.start(key, k)
}

func (r *Runner) desk(key events.Key) *desk {
	k := r.keys[key]
	if k == nil {
		k = &desk{}
		r.keys[key] = k
	}
	return k
}

func (r *Runner) start(key events.Key, k *desk) {
	if k.busy || r.ctx.Err() != nil {
		return
	}
	k.busy = true
	r.done.Go(func() { r.serve(key, k) })
}

// serve takes turns for the key while anything lies on its desk.
func (r *Runner) serve(key events.Key, k *desk) {
	for {
		select {
		case r.slots <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
		r.mu.Lock()
		batch := k.waiting
		k.waiting, k.working, k.wake = nil, batch, false
		r.mu.Unlock()
		r.turn(key, batch)
		<-r.slots
		r.mu.Lock()
		k.working = nil
		if len(k.waiting) == 0 && !k.wake || r.ctx.Err() != nil {
			k.busy = false
			if k.alarm == nil {
				delete(r.keys, key)
			}
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// turn takes one turn and acknowledges its facts, gives them back, or sets them aside.
func (r *Runner) turn(key events.Key, batch []Delivery) {
	began := time.Now()
	facts := make([]events.Event, len(batch))
	for i, d := range batch {
		facts[i] = d.Event()
	}
	t := NewTurn(r.cfg.Function, r.cfg.Store, key, facts...)
	done, err := r.run(t)
	var poisoned Poisoned
	switch {
	case err == nil:
		r.succeed(key)
		for _, d := range batch {
			d.Ack()
		}
	case errors.As(err, &poisoned):
		r.quarantine(key, batch, poisoned)
	default:
		after := r.pause(key, err)
		for _, d := range batch {
			d.Nak(after)
		}
		r.alarmIn(key, after)
		if r.ctx.Err() == nil {
			r.cfg.Log.Warn("turn put back", "function", r.cfg.Function.Name, "key", key.String(), "after", after, "error", err)
		}
	}
	if r.cfg.Turned != nil {
		r.cfg.Turned(Turned{Function: r.cfg.Function.Name, Key: key, Facts: len(batch), Rounds: t.rounds, Effects: done,
			Duration: time.Since(began), Err: err})
	}
}

// pause is how long the facts of the key rest after a turn that failed: as long as the answer asked, else 1 s doubling
// to 1 min, so that an API server that is away is not hammered.
func (r *Runner) pause(key events.Key, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.desk(key)
	k.failed++
	var retry Retry
	if errors.As(err, &retry) && retry.After > 0 {
		return retry.After
	}
	if newer := (fn.ErrNewer{}); errors.As(err, &newer) {
		return 10 * time.Second // a newer reconciler is alive and will take it
	}
	return backoff.API.Delay(k.failed)
}

func (r *Runner) succeed(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desk(key).failed = 0
}

// run goes through the steps of the turn until nothing is left to decide, and returns how many effects it did.
func (r *Runner) run(t *Turn) (done int, err error) {
	if err := t.Load(r.ctx); err != nil {
		return 0, err
	}
	for {
		if err := t.Decide(r.cfg.Now()); err != nil {
			return done, err
		}
		if err := t.Commit(r.ctx); errors.Is(err, ErrConflict) {
			if err := t.Load(r.ctx); err != nil {
				return done, err
			}
			if t.rounds < roundsMax {
				continue
			}
			return done, err
		} else if err != nil {
			return done, err
		}
		done += r.act(t)
		if !t.Again() {
			return done, t.Err()
		}
	}
}

// act does all effects of the decision, several at once.
func (r *Runner) act(t *Turn) int {
	effects := t.Effects()
	if len(effects) == 0 {
		return 0
	}
	if r.cfg.Log.Enabled(r.ctx, slog.LevelDebug) {
		r.cfg.Log.Debug("turn", "function", r.cfg.Function.Name, "key", t.Key.String(), "revision", t.revision, "facts", len(t.folded), "effects", effects)
	}
	answers := make([]Answer, len(effects))
	var g errgroup.Group
	g.SetLimit(effectsAtOnce)
	for i, e := range effects {
		g.Go(func() error {
			answers[i] = t.Act(r.ctx, ActorFunc(r.perform), e, r.cfg.Now())
			return nil
		})
	}
	_ = g.Wait() // the goroutines return no errors: answers carry them
	for _, a := range answers {
		t.Answer(a)
	}
	return len(effects)
}

// ActorFunc makes an Actor of a function.
type ActorFunc func(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error)

// Act implements Actor.
func (f ActorFunc) Act(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	return f(ctx, key, e)
}

// perform does one effect: timers are the bus's, everything else is the cluster's.
func (r *Runner) perform(ctx context.Context, key events.Key, e effect.Effect) ([]events.Event, error) {
	timer, ok := e.(effect.SetTimer)
	if !ok {
		return r.cfg.Actor.Act(ctx, key, e)
	}
	if in := timer.At.Sub(r.cfg.Now()); in < nearby {
		r.alarmIn(key, in)
	}
	return nil, r.cfg.Timers.Set(ctx, key, timer.Name, timer.At)
}

// alarmIn wakes the key after a while, in this process only. Of two alarms the earlier one stays: Plan sets the other
// again when it looks at the clock.
func (r *Runner) alarmIn(key events.Key, in time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, rings := r.desk(key), time.Now().Add(in)
	if k.alarm != nil {
		if k.rings.Before(rings) {
			return
		}
		k.alarm.Stop()
	}
	k.rings = rings
	k.alarm = time.AfterFunc(max(in, 0), func() {
		r.mu.Lock()
		k.alarm = nil
		r.mu.Unlock()
		r.Wake(key)
	})
}

// quarantine sets poison aside. Of several facts nobody knows which one it is: they go back and come one by one.
func (r *Runner) quarantine(key events.Key, batch []Delivery, cause Poisoned) {
	if len(batch) > 1 {
		for _, d := range batch {
			r.turn(key, []Delivery{d})
		}
		return
	}
	for _, d := range batch {
		d.Quarantine(cause)
	}
	r.cfg.Log.Error("fact quarantined and memory forgotten; inventory follows", "function", r.cfg.Function.Name, "key", key.String(), "error", cause)
	if err := r.cfg.Store.Forget(r.ctx, key); err != nil {
		r.cfg.Log.Error("memory not forgotten", "key", key.String(), "error", err)
	}
	r.alarmIn(key, time.Second)
}

// keepAlive asks the bus for more time for every fact that is in our hands.
func (r *Runner) keepAlive() {
	tick := time.NewTicker(AckWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		var inHand []Delivery
		for _, k := range r.keys {
			inHand = append(append(inHand, k.waiting...), k.working...)
		}
		r.mu.Unlock()
		for _, d := range inHand {
			d.InProgress()
		}
	}
}
