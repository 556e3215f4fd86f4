package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// worker is one turn of a reconciler in progress.
type worker struct {
	of      *reconciler
	id      int
	ends    bool // it abandons its turn, since another reconciler has the partition
	asleep  time.Time
	held    []*message
	turn    *engine.Turn
	stage   stage
	effects []effect.Effect
	answers []engine.Answer
	calling effect.Effect // checked for lateness and not yet sent
	decided time.Time
	checked time.Time
	failed  error // why effects have to be repeated
}

// again is the name of the timer that repeats failed effects.
const again = "again"

type stage int

const (
	idle stage = iota
	loading
	deciding
	committing
	acting
)

// work moves one worker one step on.
func (w *World) work(k *worker) bool {
	if k.asleep.After(w.now) || k.of.asleep.After(w.now) {
		return false
	}
	if k.ends && k.stage != idle {
		w.putDown(k)
		return true
	}
	ctx := context.Background()
	switch k.stage {
	case idle:
		return w.fetch(k)
	case loading:
		if err := k.turn.Load(ctx); err != nil {
			panic(err)
		}
		if k.turn.Lost() {
			k.of.timer(k.turn.Key).timer = time.Time{} // if the memory was lost, the timer may be lost, too
		}
		k.stage = deciding
	case deciding:
		if err := k.turn.Decide(k.of.clock()); err != nil {
			w.undecided(k, err)
			return true
		}
		k.stage, k.decided = committing, k.of.clock()
	case committing:
		if err := k.turn.Commit(ctx); errors.Is(err, engine.ErrConflict) {
			w.trace("%s meets a conflict", k)
			k.stage = loading
			return true
		}
		if why := k.turn.Forgot(); why != nil {
			w.happens("state too large", "%s forgets what it knows of %s: %v", k, k.turn.Key, why)
			w.of(k.turn.Key).forgot()
		}
		newer := fn.ErrNewer{}
		if err := k.of.fns[k.turn.Key.Function].Valid(w.bus.states[k.turn.Key].data); err != nil && !errors.As(err, &newer) {
			w.of(k.turn.Key).fail("%v", err)
		}
		if k.failed != nil { // the answers are stored, and what failed is repeated later
			w.finish(k)
			return true
		}
		k.effects = slices.Clone(k.turn.Effects())
		w.rand.Shuffle(len(k.effects), func(i, j int) { k.effects[i], k.effects[j] = k.effects[j], k.effects[i] })
		k.stage = acting
	case acting:
		w.act(ctx, k)
	}
	return true
}

// factsMax is how many facts a turn holds: two reconcilers that serve the same key for ever, and may change one Pod a round, would not come
// to an end with as many as a turn may meet elsewhere.
const factsMax = 4

// fetch takes some waiting facts of one key of the reconciler's partitions, in any order. Or a timer of the process fires.
func (w *World) fetch(k *worker) bool {
	var free []*message
	for _, m := range w.bus.facts {
		if !m.until.After(w.now) && k.of.takes(m.key) {
			free = append(free, m)
		}
	}
	if len(free) == 0 {
		return w.wake(k)
	}
	w.rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	key, n := free[0].key, 1+w.rand.IntN(factsMax)
	var facts []events.Event
	for _, m := range free {
		if m.key == key && len(facts) < n {
			facts = append(facts, w.hold(k, m))
		}
	}
	w.turn(k, key, facts...)
	return true
}

// hold takes a fact for the worker.
func (w *World) hold(k *worker, m *message) events.Event {
	m.until = w.now.Add(engine.AckWait)
	k.held = append(k.held, m)
	return m.event
}

// join folds into the running turn some of the facts that have arrived for its key since the last round.
func (w *World) join(k *worker) {
	for _, m := range w.bus.facts {
		if !m.until.After(w.now) && m.key == k.turn.Key && len(k.held) < factsMax && w.rand.IntN(2) == 0 && k.turn.Fold(m.event) {
			w.hold(k, m)
			w.Steps["fact joins a turn"]++
		}
	}
}

// turn begins a turn.
func (w *World) turn(k *worker, key events.Key, facts ...events.Event) {
	w.firedEarly(k, key, facts)
	k.turn, k.stage = engine.NewTurn(k.of.fns[key.Function], k.of.recent[key.Function], key, facts...), loading
	w.Steps["turns"]++
}

// act carries out the worker's next effect in two steps, so that it may fall asleep between its look at the clock and the call.
func (w *World) act(ctx context.Context, k *worker) {
	if len(k.effects) == 0 {
		for _, a := range k.answers {
			k.turn.Answer(a)
		}
		k.answers, k.failed = nil, k.turn.Err()
		if k.turn.Again() {
			if k.failed == nil {
				w.join(k)
			}
			k.stage = deciding
			return
		}
		w.finish(k)
		return
	}
	e := k.effects[0]
	if k.calling == nil {
		ready := engine.ActorFunc(func(context.Context, events.Key, effect.Effect) ([]events.Event, error) { return nil, nil })
		if a := k.turn.Act(ctx, ready, e, k.of.clock()); a.Late {
			w.trace("%s drops %v as late", k, e)
			k.answers, k.effects = append(k.answers, a), k.effects[1:]
			return
		}
		k.calling, k.checked = e, k.of.clock()
		return
	}
	k.calling, k.effects = nil, k.effects[1:]
	k.answers = append(k.answers, w.call(ctx, k, e))
}

// call carries out an effect; now and then it fails, before or after the work.
func (w *World) call(ctx context.Context, k *worker, e effect.Effect) engine.Answer {
	w.Steps[e.Kind()]++
	if t, ok := e.(effect.SetTimer); ok {
		return engine.Answer{Err: w.setTimer(ctx, k, t)}
	}
	t := w.of(k.turn.Key)
	if k.checked.Sub(k.decided) > engine.Lateness {
		t.fail("%v is carried out %v after it was decided", e, k.checked.Sub(k.decided))
	}
	if announce, ok := e.(effect.Announce); ok {
		return w.announce(ctx, k, announce)
	}
	if k.of.clock().Sub(k.decided) > engine.Lateness {
		t.trace("%s slept between its look at the clock and the call", k)
		t.late(e)
	}
	broken, before := w.odds(w.rates.Fail), w.rand.IntN(2) == 0
	if _, ok := e.(effect.RemoveFinalizer); ok && broken {
		w.row("partial-removal")
	}
	if broken {
		w.row("api-backoff")
	}
	if broken && before {
		t.trace("%s %v: fails", k, e)
		return engine.Answer{Err: engine.Retry{Err: errors.New("connection refused")}}
	}
	t.trace("%s %v", k, e)
	facts, err := t.call(ctx, k, e, broken && w.rand.IntN(2) == 0)
	if broken {
		t.trace("%s gets no answer", k)
		return engine.Answer{Err: engine.Retry{Err: errors.New("timeout")}}
	}
	return engine.Answer{Facts: facts, Err: err}
}

// call carries out an effect in the namespace, checked by the oracle.
func (w *tenant) call(ctx context.Context, k *worker, e effect.Effect, torn bool) ([]events.Event, error) {
	w.truth.asked(k.turn.Key.UID, e)
	w.noteAct(k.turn.Key.UID, e)
	w.decided = k.decided
	w.api.torn, w.api.skew = torn, k.of.skew
	facts, err := w.api.Act(ctx, k.turn.Key, e)
	w.api.torn, w.api.skew = false, 0
	w.noteFacts(facts)
	return facts, err
}

// undecided ends a turn without a decision. An old reconciler leaves the state of a newer one alone while the newer one lives;
// after that it forgets the state, which it cannot read, and takes inventory.
func (w *World) undecided(k *worker, err error) {
	key := k.turn.Key
	if newer := (fn.ErrNewer{}); !errors.As(err, &newer) {
		w.of(key).fail("decide: %v", err)
	} else if k.of.newest(key.Function) {
		w.happens("rolled back", "%s forgets %s: %v", k, key, err)
		w.fleet.forgets(k.of, key)
		w.of(key).forgot()
		_ = k.of.recent[key.Function].Forget(context.Background(), key) // never fails
		w.bus.publish(key, events.TimerFired{Name: "rolled back", At: w.now})
		facts := make([]events.Event, len(k.held))
		for i, m := range k.held {
			facts[i] = m.event
		}
		w.turn(k, key, facts...)
		return
	} else {
		w.happens("newer state", "%s leaves %s alone: %v", k, key, err)
	}
	w.drop(k)
}

// finish acknowledges. A timer on the bus repeats failed effects in a second.
func (w *World) finish(k *worker) {
	if k.failed != nil {
		_ = w.bus.Set(context.Background(), k.turn.Key, again, w.now.Add(time.Second))
	}
	for _, m := range k.held {
		w.bus.remove(m)
	}
	w.drop(k)
}

// putDown returns unfinished facts to the bus.
func (w *World) putDown(k *worker) {
	w.trace("%s puts down %s", k, k.turn.Key)
	for _, m := range k.held {
		m.until = w.now
	}
	w.drop(k)
}

// drop abandons the worker's turn; the bus redelivers its facts to another one later.
func (w *World) drop(k *worker) {
	if k.turn != nil {
		k.of.rested(k.turn.Key)
	}
	*k = worker{of: k.of, id: k.id}
}

func (k *worker) String() string { return fmt.Sprintf("%s.%d", k.of.name, k.id) }
