package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Turn is one turn of one key, in steps, so that a simulator can stop between any two of them. It has no goroutine and
// no clock of its own.
//
//	      .------------------ conflict ------------------.
//	      v                                              |
//	--> Load --> Decide --> Commit --> Act, Act, ... --> done: acknowledge
//	               ^                        |
//	               '------- answers --------'
//
// An answer of the API server goes straight into the next Decide, so that a turn sees its own writes.
type Turn struct {
	Key   events.Key
	fn    fn.Registered
	store Store

	facts    []events.Event // what woke it and was not an answer: acknowledged when the turn is over, and nowhere else by then
	inbox    []events.Event // folded by the next Decide
	folded   []events.Event // folded by the last Decide; back into the inbox on a conflict
	state    []byte
	revision uint64
	decision fn.Decision
	decided  time.Time
	rounds   int
	// committed says that the facts are in a state of ours.
	committed bool
	tried     []effect.Effect // the first of each kind, over all rounds
	late      bool
	done      int // effects of the last decision that were done
	wasted    int // effects that were done, and are wanted again just as they were: since the state was read
	retry     *Retry
	forgot    error // why the state could not be saved or used, and was forgotten
}

// NewTurn begins a turn for the key with the facts that woke it.
func NewTurn(f fn.Registered, store Store, key events.Key, facts ...events.Event) *Turn {
	return &Turn{Key: key, fn: f, store: store, facts: slices.Clip(facts), inbox: facts}
}

// Lateness is how long after its decision an effect may still be done: half the redelivery time, after which another
// worker may have the key. An older one is dropped and decided anew.
const Lateness = AckWait / 2

// AckWait is how long the bus waits for us before it gives a fact to somebody else, unless we ask for more.
const AckWait = 3 * time.Second

// Load reads the newest state.
func (t *Turn) Load(ctx context.Context) error {
	state, revision, err := t.store.Load(ctx, t.Key)
	if err != nil {
		return fmt.Errorf("load state of %s: %w", t.Key, err)
	}
	t.state, t.revision, t.wasted = state, revision, 0
	return nil
}

// Decide folds the inbox and plans. A state that cannot be read, or is not valid, is forgotten: inventory heals it, and nothing else would. It returns
// fn.ErrNewer where the state belongs to a newer version, and a Poisoned where the function panicked.
func (t *Turn) Decide(now time.Time) error {
	t.rounds++
	done, answered := t.done, t.retry == nil && !t.late
	t.late, t.retry, t.done = false, nil, 0
	d, err := t.decide(t.state, t.inbox, now)
	if err != nil {
		return err
	}
	if before := ofCluster(t.decision.Effects); t.wasted == 0 && answered && done > 0 && len(before) > 0 && reflect.DeepEqual(before, ofCluster(d.Effects)) {
		t.wasted = done
	}
	t.folded, t.inbox = t.inbox, nil
	t.decision, t.decided = d, now
	return nil
}

func (t *Turn) decide(state []byte, batch []events.Event, now time.Time) (d fn.Decision, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = Poisoned{Cause: fmt.Errorf("function %s panicked on %s: %v", t.fn.Name, t.Key, r)}
		}
	}()
	d, err = t.fn.Decide(state, batch, now)
	if newer := (fn.ErrNewer{}); err != nil && !errors.As(err, &newer) {
		t.forgot = err
		d, err = t.fn.Decide(nil, batch, now)
	}
	return d, err
}

// try remembers what the turn is about, not all that it does: a turn may have thousands of effects.
func (t *Turn) try(effects []effect.Effect) {
	for _, e := range effects {
		if !slices.ContainsFunc(t.tried, func(k effect.Effect) bool { return k.Kind() == e.Kind() }) {
			t.tried = append(t.tried, e)
		}
	}
}

// Commit makes the decision ours: compare-and-set before any effect. Where somebody else was faster it returns an error
// that wraps ErrConflict, and the turn goes on from Load: with all its facts, since whoever was faster may have forgotten
// what an earlier round of ours had remembered (a lost bucket, another version). Of a state that the bus does not take the
// function has to forget something: then it is the decision that follows from that which is committed, and Forgot says why.
func (t *Turn) Commit(ctx context.Context) error {
	idle := len(t.decision.Effects) == 0
	if idle && (bytes.Equal(t.decision.State, t.state) || t.state == nil && t.decision.Rests) {
		t.committed = true
		return nil // nothing to remember
	}
	revision, err := t.store.Save(ctx, t.Key, t.decision.State, t.revision, t.decision.Rests)
	if permanent(err) {
		revision, err = t.saveLess(ctx, err)
	}
	if err != nil {
		t.inbox, t.folded = append(t.folded, t.inbox...), nil
		if t.committed {
			t.inbox, t.committed = slices.Concat(t.facts, t.inbox), false
		}
		return fmt.Errorf("commit state of %s: %w", t.Key, err)
	}
	t.state, t.revision, t.committed = t.decision.State, revision, true
	return nil
}

// permanent reports whether the bus will never take what it has refused, however often it is asked.
func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// saveLess tells the function that its state is too large, and saves what it makes of that; if that is too large as well, what it
// makes of an empty state. The facts of the turn are acknowledged all the same: they would be too much again, for ever, and keep
// others from coming. What is lost with them is found by an inventory.
func (t *Turn) saveLess(ctx context.Context, why error) (revision uint64, err error) {
	err = why
	for _, state := range [][]byte{t.decision.State, nil} {
		if !permanent(err) {
			break
		}
		refused := events.EffectRefused{Effect: effect.SaveState, Serial: events.NoSerial, Reason: effect.StateTooLarge, Message: err.Error(), At: t.decided}
		d, failed := t.decide(state, []events.Event{refused}, t.decided)
		if failed != nil {
			return 0, failed
		}
		t.decision = d
		revision, err = t.store.Save(ctx, t.Key, d.State, t.revision, d.Rests)
	}
	if err == nil {
		t.forgot = why
	}
	return revision, err
}

// Forgot is why what the function remembered was forgotten: it was too large to be saved, could not be read, or broke a law of the function;
// nil where that was not so.
func (t *Turn) Forgot() error { return t.forgot }

// Wasted is how many effects were done and answered, and are wanted again just as they were; 0 where the answers have changed
// anything. To do them once more at once is in vain: what is remembered is not what the cluster says, or somebody undoes what is done.
func (t *Turn) Wasted() int { return t.wasted }

// ofCluster are the effects on the cluster.
func ofCluster(effects []effect.Effect) []effect.Effect {
	return slices.DeleteFunc(slices.Clone(effects), ofBus)
}

// Effects are those of the last decision, in its order.
func (t *Turn) Effects() []effect.Effect { return t.decision.Effects }

// Act does one effect of the last decision, unless it has become too old for that. It may be called from several
// goroutines at once; give what it returns to Answer from one.
func (t *Turn) Act(ctx context.Context, a Actor, e effect.Effect, now time.Time) Answer {
	if t.TooLate(now) {
		return Answer{Late: true}
	}
	facts, err := a.Act(ctx, t.Key, e)
	return Answer{Facts: facts, Err: err}
}

// TooLate says that the last decision is too old to act upon.
func (t *Turn) TooLate(now time.Time) bool { return now.Sub(t.decided) > Lateness }

// Answer is what came of an effect.
type Answer struct {
	Facts []events.Event
	Err   error
	Late  bool
}

// Answer takes in what came of an effect.
func (t *Turn) Answer(a Answer) {
	t.inbox = append(t.inbox, a.Facts...)
	t.late = t.late || a.Late
	if a.Err == nil && !a.Late {
		t.done++
	}
	if a.Err != nil {
		r := Retry{Err: a.Err}
		errors.As(a.Err, &r)
		if t.retry == nil || r.After > t.retry.After {
			t.retry = &r
		}
	}
}

// Fold adds facts that have arrived meanwhile to the next Decide.
func (t *Turn) Fold(facts ...events.Event) {
	t.facts, t.inbox = append(t.facts, facts...), append(t.inbox, facts...)
}

// Again says that the turn has something to decide yet: answers that came back, or effects that were dropped as late.
func (t *Turn) Again() bool { return len(t.inbox) > 0 || t.late }

// Err is why the effects of the last decision have to be repeated later: a Retry, or nil.
func (t *Turn) Err() error {
	if t.retry != nil {
		return *t.retry
	}
	return nil
}

// Poisoned says that a function could not digest a fact: the fact is quarantined, the key's state forgotten.
type Poisoned struct{ Cause error }

func (e Poisoned) Error() string { return e.Cause.Error() }

func (e Poisoned) Unwrap() error { return e.Cause }
