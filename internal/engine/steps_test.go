package engine_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// wanting is a function that always wants these effects, and changes its state with each fact.
func wanting(effects ...effect.Effect) fn.Registered {
	return fn.Register(fn.Function[int]{Name: "count", Version: 1,
		Observe: func(s int, _ events.Event) int { return s + 1 },
		Plan:    func(s int, _ time.Time) (int, []effect.Effect) { return s, effects }})
}

// step decides and commits.
func step(t *testing.T, turn *engine.Turn, now time.Time) {
	t.Helper()
	if err := cmp.Or(turn.Decide(now), turn.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// What counts as done in vain: effects on the cluster that were all done and answered, and are wanted again.
func TestWhatIsInVain(t *testing.T) {
	done := engine.Answer{Facts: []events.Event{events.PodGone{}}}
	remove, tell := effect.RemoveFinalizer{Name: "a"}, effect.Announce{Event: tickOf("a")}
	for _, c := range []struct {
		name    string
		wants   []effect.Effect
		answers []engine.Answer
		wasted  int
	}{
		{"it was done", []effect.Effect{remove}, []engine.Answer{done}, 1},
		{"both were done, one of them on the bus", []effect.Effect{remove, tell}, []engine.Answer{done, done}, 2},
		{"another one was late", []effect.Effect{remove, remove}, []engine.Answer{done, {Late: true}}, 0},
		{"another one failed", []effect.Effect{remove, remove}, []engine.Answer{done, {Err: errors.New("timeout")}}, 0},
		{"it failed", []effect.Effect{remove}, []engine.Answer{{Err: errors.New("timeout")}}, 0},
		{"it is for the bus alone", []effect.Effect{tell}, []engine.Answer{done}, 0},
		{"there was none", nil, nil, 0},
	} {
		turn := engine.NewTurn(wanting(c.wants...), &bench{}, key, events.TimerFired{})
		if err := turn.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		step(t, turn, time.Now())
		for _, a := range c.answers {
			turn.Answer(a)
		}
		turn.Fold(events.TimerFired{})
		step(t, turn, time.Now())
		if got := turn.Wasted(); got != c.wasted {
			t.Errorf("%s: %d in vain, want %d", c.name, got, c.wasted)
		}
	}
}

// A decision is saved unless the store has the same already: then nothing depends on it. A state that rests from the start is not worth
// the store's room.
func TestWhichDecisionsAreSaved(t *testing.T) {
	for _, c := range []struct {
		name                  string
		first, changes, rests bool
		effects               []effect.Effect
		saved                 bool
	}{
		{name: "nothing has changed"},
		{name: "nothing has changed in a state that rests", rests: true},
		{name: "the state has changed", changes: true, saved: true},
		{name: "the state has changed, and rests", changes: true, rests: true, saved: true},
		{name: "effects are wanted", effects: []effect.Effect{effect.RemoveFinalizer{}}, saved: true},
		{name: "the first state", first: true, saved: true},
		{name: "the first state, which rests", first: true, rests: true},
		{name: "the first state, which rests after its effects", first: true, rests: true, effects: []effect.Effect{effect.RemoveFinalizer{}}, saved: true},
	} {
		f := fn.Register(fn.Function[int]{Name: "count", Version: 1,
			Observe: func(s int, e events.Event) int {
				if _, ok := e.(events.PodGone); ok && !c.changes {
					return s
				}
				return s + 1
			},
			Plan:  func(s int, _ time.Time) (int, []effect.Effect) { return s, c.effects },
			Rests: func(int) bool { return c.rests }})
		b := &bench{}
		if !c.first {
			d, err := f.Decide(nil, []events.Event{events.TimerFired{}}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			b.state, b.revision = d.State, 1
		}
		turn := engine.NewTurn(f, b, key, events.PodGone{})
		if err := turn.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		step(t, turn, time.Now())
		if saved := b.count("commit") == 1; saved != c.saved {
			t.Errorf("%s: saved %v, want %v", c.name, saved, c.saved)
		}
	}
}

// A state that is too large is forgotten once what is left of it has been saved, not before.
func TestWhenAStateThatIsTooLargeIsForgotten(t *testing.T) {
	b := &bench{most: 150}
	turn := engine.NewTurn(hoarder(false), racing{b}, key, events.TimerFired{Name: strings.Repeat("x", 200)})
	if err := turn.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(turn.Decide(time.Unix(0, 0)), turn.Commit(t.Context())); !errors.Is(err, engine.ErrConflict) || turn.Forgot() != nil {
		t.Errorf("%v: forgotten because %v, although another worker has saved another state", err, turn.Forgot())
	}
	if err := turn.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	step(t, turn, time.Unix(0, 0))
	if turn.Forgot() == nil {
		t.Error("not forgotten")
	}
}

// An effect is late once half of the time has passed after which another worker may have the key.
func TestHowLateAnEffectMayBe(t *testing.T) {
	decided := time.Unix(1000, 0)
	for after, late := range map[time.Duration]bool{0: false, engine.AckWait / 2: false, engine.AckWait/2 + 1: true} {
		turn := engine.NewTurn(wanting(effect.RemoveFinalizer{}), &bench{}, key, events.TimerFired{})
		step(t, turn, decided)
		if got := turn.TooLate(decided.Add(after)); got != late {
			t.Errorf("after %v: late %v", after, got)
		}
	}
}

// Of several failures the longest wait counts, and of equal ones the first.
func TestWhichFailureCounts(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		waits []time.Duration
		want  string
	}{
		{[]time.Duration{0}, "0"},
		{[]time.Duration{0, 0}, "0"},
		{[]time.Duration{minute, minute}, "0 (try again after 1m0s)"},
		{[]time.Duration{minute, 2 * minute}, "1 (try again after 2m0s)"},
		{[]time.Duration{2 * minute, minute}, "0 (try again after 2m0s)"},
		{[]time.Duration{0, minute, 0}, "1 (try again after 1m0s)"},
	} {
		turn := engine.NewTurn(wanting(), &bench{}, key)
		for i, wait := range c.waits {
			turn.Answer(engine.Answer{Err: engine.Retry{After: wait, Err: fmt.Errorf("%d", i)}})
		}
		if got := turn.Err(); got == nil || got.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.waits, got, c.want)
		}
	}
}
