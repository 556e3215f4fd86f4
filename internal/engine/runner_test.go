package engine_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

func TestCommitThenActThenAcknowledge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a turn ends after a second of the clock
		b := start(t, counter())
		b.act = gone
		b.Deliver(fact{b, "a"})
		b.await(t, "ack a")
		want := []string{"commit", "act RemoveFinalizer a", "commit", "ack a"}
		if !slices.Equal(b.lines, want) {
			t.Errorf("got  %q\nwant %q", b.lines, want)
		}
	})
}

func TestATurnTellsWhatItWasAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a turn ends after a second of the clock
		b := start(t, counter())
		first := true
		b.act = func(e effect.Effect) engine.Answer {
			if !first {
				return gone(e)
			}
			first = false // the second round does the same kind of effect again, for another Pod
			return engine.Answer{Facts: append(gone(e).Facts, events.TimerFired{Name: "b"})}
		}
		b.Deliver(fact{b, "a"})
		got := <-b.turned
		if !slices.Equal(got.Facts, []events.Event{events.TimerFired{Name: "a"}}) {
			t.Errorf("it folded %v", got.Facts)
		}
		if !slices.Equal(got.Tried, []effect.Effect{effect.RemoveFinalizer{Name: "a"}}) || got.Effects != 2 || got.Rounds != 3 {
			t.Errorf("it tried %v, %d effects in %d rounds", got.Tried, got.Effects, got.Rounds)
		}
		if got.Function != "count" || got.Key != key || got.Err != nil {
			t.Errorf("got %+v", got)
		}
	})
}

func TestAConflictIsDecidedAnewOnTheNewestState(t *testing.T) {
	b := start(t, counter())
	b.act, b.conflicts = gone, 2
	b.Deliver(fact{b, "a"})
	b.await(t, "ack a")
	if b.count("conflict") != 2 || b.count("act RemoveFinalizer a") != 1 {
		t.Errorf("got %q", b.lines)
	}
}

func TestWhatCouldNotBeDoneIsTriedAgain(t *testing.T) {
	b := start(t, counter())
	failures := 1
	b.act = func(e effect.Effect) engine.Answer {
		if failures > 0 {
			failures--
			return engine.Answer{Err: engine.Retry{After: 10 * time.Millisecond, Err: errors.New("the server asks its clients to wait")}}
		}
		return gone(e)
	}
	b.Deliver(fact{b, "a"})
	b.await(t, "timer again") // on the bus, so that it is repeated even if this process dies now,
	b.await(t, "ack a")       // and the fact need not stay unacknowledged
	deadline := time.After(10 * time.Second)
	for b.count("act RemoveFinalizer a") < 2 {
		select {
		case <-deadline:
			t.Fatalf("not tried again: %q", b.lines)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestPoisonIsSetAsideAndTheRestGoesOn(t *testing.T) {
	b := start(t, counter())
	b.act = gone
	b.Deliver(fact{b, "poison"})
	b.Deliver(fact{b, "a"})
	b.await(t, "quarantine poison: true")
	b.await(t, "forget")
	b.await(t, "ack a")
	if b.count("quarantine a: true") > 0 || b.count("ack poison") > 0 {
		t.Errorf("got %q", b.lines)
	}
}

// newerState is a state that the version of counter cannot read.
func newerState(t *testing.T) []byte {
	t.Helper()
	d, err := fn.Register(fn.Function[int]{Name: "count", Version: 9,
		Observe: func(s int, _ events.Event) int { return s },
		Plan:    func(s int, _ time.Time) (int, []effect.Effect) { return s, nil }}).Decide(nil, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return d.State
}

func TestAStateOfANewerVersionIsNeverWritten(t *testing.T) {
	b := start(t, counter())
	b.mu.Lock()
	b.state, b.revision = newerState(t), 1
	b.mu.Unlock()
	b.Deliver(fact{b, "a"})
	b.await(t, "nak a")
	if b.count("commit") > 0 || b.count("ack a") > 0 || b.count("forget") > 0 {
		t.Errorf("got %q", b.lines)
	}
}

func TestALateEffectIsNotDone(t *testing.T) {
	b := start(t, counter())
	turn := engine.NewTurn(counter(), b, key, events.TimerFired{Name: "a"})
	decided := time.Unix(1000, 0)
	for _, err := range []error{turn.Load(t.Context()), turn.Decide(decided), turn.Commit(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a := turn.Act(t.Context(), engine.ActorFunc(b.perform), turn.Effects()[0], decided.Add(engine.Lateness+1))
	turn.Answer(a)
	if !a.Late || b.count("act RemoveFinalizer a") > 0 || !turn.Again() {
		t.Errorf("answer %+v, again %v, journal %q", a, turn.Again(), b.lines)
	}
}

func TestOneKeyNeverTakesTwoTurnsAtOnce(t *testing.T) {
	b := start(t, counter())
	var mu sync.Mutex
	inside := 0
	b.act = func(e effect.Effect) engine.Answer {
		mu.Lock()
		if inside++; inside > 1 {
			t.Error("two effects of one Pod at once")
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			inside--
			mu.Unlock()
		}()
		return gone(e)
	}
	for range 200 {
		b.Deliver(fact{b, "same"})
	}
	deadline := time.After(10 * time.Second)
	for b.count("ack same") < 200 {
		select {
		case <-deadline:
			t.Fatalf("%d of 200 acknowledged", b.count("ack same"))
		case <-time.After(time.Millisecond):
		}
	}
}

func TestFactsAreRememberedAndNothingIsDoneWhileEffectsRest(t *testing.T) {
	b := start(t, counter())
	b.act = func(effect.Effect) engine.Answer {
		return engine.Answer{Err: engine.Retry{After: time.Hour, Err: errors.New("the server asks its clients to wait")}}
	}
	b.Deliver(fact{b, "a"})
	b.await(t, "ack a")
	tries := b.count("act RemoveFinalizer a")
	for _, name := range []string{"b", "c", "d"} {
		b.Deliver(fact{b, name})
		b.await(t, "ack "+name)
	}
	if tries != 1 || b.count("act RemoveFinalizer a") != 1 || b.count("act RemoveFinalizer b") != 0 {
		t.Errorf("got %q", b.lines)
	}
}

func TestAnswersAreRememberedEvenIfOneEffectFails(t *testing.T) {
	b := start(t, counter())
	failed := false
	b.act = func(e effect.Effect) engine.Answer {
		if e.(effect.RemoveFinalizer).Name == "b" && !failed {
			failed = true
			return engine.Answer{Err: engine.Retry{After: 10 * time.Millisecond, Err: errors.New("timeout")}}
		}
		return gone(e)
	}
	turn := engine.NewTurn(counter(), b, key, events.TimerFired{Name: "a"}, events.TimerFired{Name: "b"})
	for _, err := range []error{turn.Load(t.Context()), turn.Decide(time.Now()), turn.Commit(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Wake(key) // the state wants two finalizers removed
	deadline := time.After(10 * time.Second)
	for b.count("act RemoveFinalizer b") < 2 {
		select {
		case <-deadline:
			t.Fatalf("b is not tried again: %q", b.lines)
		case <-time.After(time.Millisecond):
		}
	}
	if b.count("act RemoveFinalizer a") != 1 {
		t.Errorf("a was done again although its answer had come: %q", b.lines)
	}
}
