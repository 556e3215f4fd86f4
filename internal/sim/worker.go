package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/engine"
)

// worker is one reconciler's turn in progress.
type worker struct {
	id      int
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
	if k.asleep.After(w.now) {
		return false
	}
	ctx := context.Background()
	switch k.stage {
	case idle:
		return w.fetch(k)
	case loading:
		if err := k.turn.Load(ctx); err != nil {
			panic(err)
		}
		k.stage = deciding
	case deciding:
		if err := k.turn.Decide(w.now); err != nil {
			w.truth.fail("decide: %v", err)
			w.drop(k)
			return true
		}
		k.stage, k.decided = committing, w.now
	case committing:
		if err := k.turn.Commit(ctx); errors.Is(err, engine.ErrConflict) {
			w.trace("worker%d meets a conflict", k.id)
			k.stage = loading
			return true
		}
		if k.failed != nil { // the answers are remembered, and what failed is repeated later
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

// fetch takes facts of one key: some of those that wait, in any order.
func (w *World) fetch(k *worker) bool {
	var free []*message
	for _, m := range w.bus.facts {
		if !m.until.After(w.now) {
			free = append(free, m)
		}
	}
	if len(free) == 0 {
		return false
	}
	w.rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	key, n := free[0].key, 1+w.rand.IntN(4)
	var facts []events.Event
	for _, m := range free {
		if m.key == key && len(facts) < n {
			m.holder, m.until = k.id, w.now.Add(engine.AckWait)
			k.held, facts = append(k.held, m), append(facts, m.event)
		}
	}
	k.turn, k.stage = engine.NewTurn(w.fn, w.bus, key, facts...), loading
	w.Steps["turns"]++
	return true
}

// act does the worker's next effect in two steps, so that it may fall asleep between the look at the clock and the call.
func (w *World) act(ctx context.Context, k *worker) {
	if len(k.effects) == 0 {
		for _, a := range k.answers {
			k.turn.Answer(a)
		}
		k.answers, k.failed = nil, k.turn.Err()
		if k.turn.Again() {
			k.stage = deciding
			return
		}
		w.finish(k)
		return
	}
	e := k.effects[0]
	if k.calling == nil {
		ready := engine.ActorFunc(func(context.Context, events.Key, effect.Effect) ([]events.Event, error) { return nil, nil })
		if a := k.turn.Act(ctx, ready, e, w.now); a.Late {
			w.trace("worker%d drops %v as late", k.id, e)
			k.answers, k.effects = append(k.answers, a), k.effects[1:]
			return
		}
		k.calling, k.checked = e, w.now
		return
	}
	k.calling, k.effects = nil, k.effects[1:]
	k.answers = append(k.answers, w.call(ctx, k, e))
}

// call does an effect; now and then it fails, before or after the work.
func (w *World) call(ctx context.Context, k *worker, e effect.Effect) engine.Answer {
	w.Steps[e.Kind()]++
	if t, ok := e.(effect.SetTimer); ok {
		return engine.Answer{Err: w.bus.Set(ctx, k.turn.Key, t.Name, t.At)}
	}
	if k.checked.Sub(k.decided) > engine.Lateness {
		w.truth.fail("%v is done %v after it was decided", e, k.checked.Sub(k.decided))
	}
	if announce, ok := e.(effect.Announce); ok {
		return w.announce(ctx, k, announce)
	}
	if _, ok := e.(effect.CreatePod); ok && w.now.Sub(k.decided) > engine.Lateness {
		w.trace("worker%d slept between its look at the clock and the call", k.id)
		w.truth.zombies++
	}
	broken, before := w.odds(w.rates.Fail), w.rand.IntN(2) == 0
	if _, ok := e.(effect.ReleasePod); ok && broken {
		w.row("partial-release")
	}
	if broken {
		w.row("api-backoff")
	}
	if broken && before {
		w.trace("worker%d %v: fails", k.id, e)
		return engine.Answer{Err: engine.Retry{Err: errors.New("connection refused")}}
	}
	w.trace("worker%d %v", k.id, e)
	w.truth.asked(e)
	w.noteAct(k.turn.Key.UID, e)
	w.api.torn, w.decided = broken && w.rand.IntN(2) == 0, k.decided
	facts, err := w.api.Act(ctx, k.turn.Key, e)
	w.api.torn = false
	w.noteFacts(facts)
	if broken {
		w.trace("worker%d hears nothing of it", k.id)
		return engine.Answer{Err: engine.Retry{Err: errors.New("timeout")}}
	}
	return engine.Answer{Facts: facts, Err: err}
}

// finish acknowledges. What could not be done is repeated in a second, because a timer on the bus says so.
func (w *World) finish(k *worker) {
	if k.turn.Unsaid() != nil {
		_ = w.bus.Set(context.Background(), k.turn.Key, "announce", w.now.Add(time.Second))
	}
	if k.failed != nil {
		_ = w.bus.Set(context.Background(), k.turn.Key, "again", w.now.Add(time.Second))
	}
	for _, m := range k.held {
		w.bus.remove(m)
	}
	*k = worker{id: k.id}
}

// drop forgets the worker's turn; the bus gives its facts to somebody else in time.
func (w *World) drop(k *worker) { *k = worker{id: k.id} }
