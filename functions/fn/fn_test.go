package fn_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// tally is a function for tests: it remembers the names of Pods, and the names of Jobs as a set.
type tally struct {
	Pods []string
	Jobs map[string]bool
}

func counting(version int) fn.Function[tally] {
	return fn.Function[tally]{
		Name: "tally", Version: version,
		Observe: func(s tally, e events.Event) tally {
			if p, ok := e.(events.PodObserved); ok {
				s.Pods = append(s.Pods, p.Pod.Name)
			}
			return s
		},
		Plan: func(s tally, now time.Time) (tally, []effect.Effect) {
			return s, []effect.Effect{effect.SetTimer{Name: "count", At: now.Add(time.Duration(len(s.Pods)) * time.Second)}}
		},
	}
}

func observed(names ...string) (batch []events.Event) {
	for _, name := range names {
		batch = append(batch, events.PodObserved{Pod: events.Pod{Name: name}})
	}
	return batch
}

var now = time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC)

func decide(t *testing.T, f fn.Function[tally], state []byte, batch ...events.Event) fn.Decision {
	t.Helper()
	d, err := fn.Register(f).Decide(state, batch, now)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// due returns the number of Pods that a decision knows.
func due(d fn.Decision) int { return int(d.Effects[0].(effect.SetTimer).At.Sub(now) / time.Second) }

func TestDecideFoldsIntoTheStateThatItIsGiven(t *testing.T) {
	first := decide(t, counting(1), nil, observed("a", "b")...)
	second := decide(t, counting(1), first.State, observed("c")...)
	if due(first) != 2 || due(second) != 3 || second.Rests {
		t.Errorf("%v, then %v", first, second)
	}
	if again := decide(t, counting(1), first.State); !bytes.Equal(again.State, first.State) {
		t.Errorf("an unchanged state is encoded as %x and as %x", first.State, again.State)
	}
}

func TestRestsIsAskedOfTheNewState(t *testing.T) {
	f := counting(1)
	f.Rests = func(s tally) bool { return len(s.Pods) == 2 }
	if one := decide(t, f, nil, observed("a")...); one.Rests {
		t.Error("rests with one Pod")
	} else if two := decide(t, f, one.State, observed("b")...); !two.Rests {
		t.Error("does not rest with two Pods")
	}
}

// A state of an older version is forgotten, one of a newer version is left alone, and so is what cannot be decoded.
func TestStatesThatAreNotItsOwn(t *testing.T) {
	two := decide(t, counting(2), nil, observed("a", "b")...).State
	if d := decide(t, counting(3), two, observed("c")...); due(d) != 1 {
		t.Errorf("an older state is remembered: %d Pods", due(d))
	}
	lawful := counting(2)
	lawful.Valid = func(s tally) error {
		if len(s.Pods) > 1 {
			return errors.New("more than one Pod")
		}
		return nil
	}
	for _, c := range []struct {
		name  string
		f     fn.Function[tally]
		state []byte
		says  string
	}{
		{"of a newer version", counting(1), two, "state has version 2, this binary knows 1"},
		{"no envelope", counting(2), []byte("nonsense"), "decode state"},
		{"an envelope without a state", counting(2), []byte{0x82, 0x02, 0x63, 'a', 'b', 'c'}, "decode state"},
		{"that breaks a law", lawful, two, "state is not valid: more than one Pod"},
	} {
		r := fn.Register(c.f)
		_, err := r.Decide(c.state, observed("c"), now)
		for _, err := range []error{err, r.Valid(c.state)} {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.name, err, c.says)
			}
		}
	}
	if newer := (fn.ErrNewer{}); !errors.As(fn.Register(counting(1)).Valid(two), &newer) || newer != (fn.ErrNewer{Have: 2, Want: 1}) {
		t.Errorf("%+v", newer)
	}
	one := decide(t, lawful, nil, observed("a")...).State
	if err := fn.Register(lawful).Valid(one); err != nil {
		t.Errorf("a lawful state: %v", err)
	}
}

func TestVersionOfAnEncodedState(t *testing.T) {
	if v, err := fn.VersionOf(decide(t, counting(7), nil, observed("a")...).State); v != 7 || err != nil {
		t.Errorf("version %d, %v; want 7", v, err)
	}
	if _, err := fn.VersionOf([]byte("nonsense")); err == nil || !strings.Contains(err.Error(), "decode state") {
		t.Errorf("nonsense: %v", err)
	}
}

// A state may have more elements than the decoder's default of 131,072: it is bounded by the size of a message.
func TestLargeStates(t *testing.T) {
	const many = 200_000
	f := counting(1)
	f.Observe = func(s tally, _ events.Event) tally {
		s.Pods, s.Jobs = make([]string, many), make(map[string]bool, many)
		for i := range many {
			s.Jobs[string(rune('a'+i%26))+time.Duration(i).String()] = true
		}
		return s
	}
	large := decide(t, f, nil, observed("a")...)
	if again := decide(t, f, large.State); due(again) != many {
		t.Errorf("%d Pods of %d", due(again), many)
	}
}
