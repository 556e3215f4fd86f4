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

// Turn is one turn of one key, in steps, so that a simulator can stop between any two of them. It has no goroutine and no clock.
//
//	      .------------------ conflict ------------------.
//	      v                                              |
//	--> Load --> Decide --> Commit --> Act, Act, ... --> done: acknowledge
//	               ^                        |
//	               '--- answers, facts -----'
//
// An answer of the API server goes straight into the next Decide, so that a turn sees its own writes.
type Turn struct {
	Key   events.Key
	fn    fn.Registered
	store Store

	facts    []events.Event // what woke it, without answers: acknowledged when the turn is over, and stored nowhere else until then
	inbox    []events.Event // folded by the next Decide
	folded   []events.Event // folded by the last Decide; a conflict puts them back into the inbox
	state    []byte
	revision uint64
	decision fn.Decision
	decided  time.Time
	rounds   int
	waited   time.Duration // for other turns, between rounds
	// committed reports whether the facts are in a state that this turn saved.
	committed bool
	// contended reports whether it has met a conflict: another worker has the key, too.
	contended bool
	// guessed reports whether nothing was read: that there is no state is a guess, which Commit checks.
	guessed bool
	tried   []effect.Effect // the first of each kind, over all rounds
	late    bool
	done    int // effects of the last decision that were done
	wasted  int // effects that were done and are wanted again unchanged, since the state was read
	retry   *Retry
	forgot  error // why the state could not be saved or used, and was forgotten
}

// NewTurn begins a turn for the key with the facts that woke it.
func NewTurn(f fn.Registered, store Store, key events.Key, facts ...events.Event) *Turn {
	if recent, ok := store.(*Recent); ok && slices.ContainsFunc(facts, needsNewest) {
		recent.Drop(key)
	}
	return &Turn{Key: key, fn: f, store: store, facts: slices.Clip(facts), inbox: facts}
}

// Lateness is how long after its decision an effect may still be done: half the redelivery time, after which another worker may
// have the key. A later one is dropped and decided again.
const Lateness = AckWait / 2

// AckWait is how long the bus waits for an acknowledgement or an InProgress before it gives a fact to another worker.
const AckWait = 3 * time.Second

// Load reads the newest state, or the one that this process saved last (Recent). Of a new Job there is none, so Load does not
// ask the store: if there is one all the same, Commit meets a conflict, after which Load asks.
func (t *Turn) Load(ctx context.Context) error {
	if recent, ok := t.store.(*Recent); ok && t.rounds == 0 && isNew(t.inbox) {
		t.state, t.revision = recent.Remembered(t.Key)
		t.guessed = t.revision == 0
		return nil
	}
	state, revision, err := t.store.Load(ctx, t.Key)
	if err != nil {
		return fmt.Errorf("load state of %s: %w", t.Key, err)
	}
	t.state, t.revision, t.wasted, t.guessed = state, revision, 0, false
	return nil
}

// isNew reports whether the facts are about a Job that no controller has begun.
func isNew(facts []events.Event) bool {
	return !slices.ContainsFunc(facts, needsNewest) && slices.ContainsFunc(facts, func(e events.Event) bool {
		j, ok := e.(events.JobObserved)
		return ok && j.Job.Untouched()
	})
}

// Lost reports whether the store has no state of the key: if there was one, it is lost.
func (t *Turn) Lost() bool { return t.revision == 0 }

// Decide folds the inbox and plans. It starts without a state if the stored one cannot be read or is not valid: only inventory
// heals that. It returns fn.ErrNewer if a newer version wrote the state, and a Poisoned if the function panicked.
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

// try records what the turn is about, not all that it does: a turn may have thousands of effects.
func (t *Turn) try(effects []effect.Effect) {
	for _, e := range effects {
		if !slices.ContainsFunc(t.tried, func(k effect.Effect) bool { return k.Kind() == e.Kind() }) {
			t.tried = append(t.tried, e)
		}
	}
}

// Commit saves the decision by compare-and-set, before any effect. If another worker was faster, it returns an error that wraps
// ErrConflict, and the turn goes on from Load. It folds all its facts again, since the other worker may have lost what an earlier
// round of this turn had saved (a lost bucket, another version). If the bus rejects the state as too large, the function has to
// drop something; Commit then saves the decision that follows from that, and Forgot returns the reason.
func (t *Turn) Commit(ctx context.Context) error {
	if t.idle() && !t.guessed {
		t.committed = true
		return nil
	}
	revision, err := t.save(ctx)
	if err != nil {
		t.contended = true
		t.inbox, t.folded = append(t.folded, t.inbox...), nil
		if t.committed {
			t.inbox, t.committed = slices.Concat(t.facts, t.inbox), false
		}
		return fmt.Errorf("commit state of %s: %w", t.Key, err)
	}
	t.state, t.revision, t.committed, t.guessed = t.decision.State, revision, true, false
	return nil
}

// idle reports whether there is nothing to do, and nothing to remember.
func (t *Turn) idle() bool {
	return len(t.decision.Effects) == 0 && (bytes.Equal(t.decision.State, t.state) || t.state == nil && t.decision.Rests)
}

func (t *Turn) save(ctx context.Context) (revision uint64, err error) {
	if t.idle() {
		return 0, fmt.Errorf("%w: it has to be read first", ErrConflict)
	}
	revision, err = t.store.Save(ctx, t.Key, t.decision.State, t.revision, t.decision.Rests)
	if events.Permanent(err) {
		revision, err = t.saveLess(ctx, err)
	}
	return revision, err
}

// saveLess tells the function that its state is too large, and saves the result; if that is too large as well, the result from an
// empty state. The facts of the turn are acknowledged all the same: they would be too much again, for ever, and would block
// others. An inventory finds what is lost with them.
func (t *Turn) saveLess(ctx context.Context, why error) (revision uint64, err error) {
	err = why
	for _, state := range [][]byte{t.decision.State, nil} {
		if !events.Permanent(err) {
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

// Forgot returns why the stored state was dropped: it was too large to be saved, could not be read, or broke a law of the
// function; otherwise nil.
func (t *Turn) Forgot() error { return t.forgot }

// Wasted returns how many effects were done and answered and are wanted again unchanged; 0 if the answers have changed anything.
// Doing them again at once is in vain: the state disagrees with the cluster, or another controller undoes the effects.
func (t *Turn) Wasted() int { return t.wasted }

// ofCluster returns the effects on the cluster.
func ofCluster(effects []effect.Effect) []effect.Effect {
	return slices.DeleteFunc(slices.Clone(effects), ofBus)
}

// Effects returns the effects of the last decision, in its order.
func (t *Turn) Effects() []effect.Effect { return t.decision.Effects }

// Act does one effect of the last decision, unless the decision is too old. Several goroutines may call it at the same time; pass
// the results to Answer from one.
func (t *Turn) Act(ctx context.Context, a Actor, e effect.Effect, now time.Time) Answer {
	if t.TooLate(now) {
		return Answer{Late: true}
	}
	facts, err := a.Act(ctx, t.Key, e)
	return Answer{Facts: facts, Err: err}
}

// TooLate reports whether the last decision is too old to act upon.
func (t *Turn) TooLate(now time.Time) bool { return now.Sub(t.decided) > Lateness }

// Answer is the outcome of an effect.
type Answer struct {
	Facts []events.Event
	Err   error
	Late  bool
}

// Answer takes in the outcome of an effect.
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

// Fold adds facts that have arrived meanwhile to the next Decide, and reports whether it did. It adds none
//   - if one of them may tell something only to a state that is newer than that of this turn (see Recent),
//   - to the answer of an inventory (see effect.Inquires),
//   - after a conflict: two workers whose turns grow with each other's facts, and fold all of them again, might never come to an end.
func (t *Turn) Fold(facts ...events.Event) bool {
	if t.contended || slices.ContainsFunc(t.decision.Effects, effect.Inquires) || slices.ContainsFunc(facts, needsNewest) {
		return false
	}
	t.facts, t.inbox = append(t.facts, facts...), append(t.inbox, facts...)
	return true
}

// Again reports whether the turn has more to decide: answers that came back, or effects that were dropped as late.
func (t *Turn) Again() bool { return len(t.inbox) > 0 || t.late }

// Err returns why the effects of the last decision have to be repeated later: a Retry, or nil.
func (t *Turn) Err() error {
	if t.retry != nil {
		return *t.retry
	}
	return nil
}

// Poisoned reports that a function panicked on a fact: the fact is quarantined, and the key's state deleted.
type Poisoned struct{ Cause error }

func (e Poisoned) Error() string { return e.Cause.Error() }

func (e Poisoned) Unwrap() error { return e.Cause }
