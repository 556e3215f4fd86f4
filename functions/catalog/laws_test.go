package catalog_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
	"github.com/jobstream/jobstream/internal/sim/schedules"
	"github.com/jobstream/jobstream/internal/zone"
)

// TestLaws holds every function against the laws of functions/fn on the states and facts of random worlds: what a law
// says of a function has to be true in the places where a function really gets.
func TestLaws(t *testing.T) {
	for _, f := range catalog.All(job.DefaultLimits(), zone.Load) {
		hold(t, f.Name, f)
	}
	all := job.DefaultLimits()
	all.AnnouncePods = true
	hold(t, "job that announces Pods", catalog.All(all, zone.Load)[0])
}

func hold(t *testing.T, what string, f fn.Registered) {
	for name, law := range laws {
		t.Run(what+"/"+name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				seed := rapid.Uint64().Draw(t, "seed")
				if err := worlds[f.Name](seed, watched(t, f, law)); err != nil {
					t.Fatalf("world %d: %v", seed, err)
				}
			})
		})
	}
}

// worlds are where each function lives.
var worlds = map[string]func(seed uint64, f fn.Registered) error{
	"job":          func(seed uint64, f fn.Registered) error { return sim.Live(sim.New(seed, f, sim.Rough, nil), nil) },
	"scheduledjob": func(seed uint64, f fn.Registered) error { return schedules.New(seed, f).Live(30) },
}

// law is told what a function was given and what it decided.
type law func(f fn.Registered, state []byte, batch []events.Event, now time.Time, got fn.Decision) error

var laws = map[string]law{
	"the same state and facts give the same decision": func(f fn.Registered, state []byte, batch []events.Event, now time.Time, got fn.Decision) error {
		return differ(got, decide(f, state, batch, now))
	},
	"a repeated fact changes nothing": func(f fn.Registered, state []byte, batch []events.Event, now time.Time, got fn.Decision) error {
		refusals := 0
		for i, e := range batch {
			if _, ok := e.(events.JobListed); ok && i > 0 && !known(state) {
				return nil // what comes before the inventory is not heard the first time
			}
			if _, ok := e.(events.EffectRefused); ok {
				refusals++
			}
		}
		if refusals > 1 {
			return nil // only the last is known again; the others make the rest longer, if anything
		}
		return unlessStray(got, decide(f, state, slices.Concat(batch, batch), now))
	},
	"the order of observations does not matter": func(f fn.Registered, state []byte, batch []events.Event, now time.Time, got fn.Decision) error {
		for _, e := range batch {
			switch e.(type) {
			case events.PodObserved, events.JobObserved, events.ScheduledJobObserved, events.RunObserved:
			default:
				return nil // a snapshot, a deletion or a refusal is a statement about what is known by then
			}
		}
		turned := slices.Clone(batch)
		slices.Reverse(turned)
		return unlessStray(got, decide(f, state, turned, now))
	},
	"what was decided and not seen done is decided again": func(f fn.Registered, _ []byte, _ []events.Event, now time.Time, got fn.Decision) error {
		again := decide(f, got.State, nil, now)
		then := lasting(again.Effects)
		for _, e := range lasting(got.Effects) {
			if !slices.Contains(then, e) {
				return fmt.Errorf("first %v\nthen  %v", e, then)
			}
		}
		return nil
	},
	"a function that rests decides nothing": func(_ fn.Registered, _ []byte, _ []events.Event, _ time.Time, got fn.Decision) error {
		if got.Rests && len(got.Effects) > 0 {
			return fmt.Errorf("rests and wants %v", got.Effects)
		}
		return nil
	},
}

// known says that the state knows the cluster: before its inventory it remembers next to nothing.
func known(state []byte) bool {
	var parts []cbor.RawMessage
	var fields struct{ Known bool }
	return len(state) > 0 && cbor.Unmarshal(state, &parts) == nil && cbor.Unmarshal(parts[len(parts)-1], &fields) == nil && fields.Known
}

// unlessStray compares two decisions, but for those that let Pods go or take them in: an observation that is late may look like a
// stray, or like a Pod that somebody else has made, in one order of facts and not in another, and the precondition of the
// effect makes that harmless.
func unlessStray(a, b fn.Decision) error {
	letsGo := func(e effect.Effect) bool {
		switch e.(type) {
		case effect.DeletePod, effect.RemoveFinalizer, effect.AdoptPod, effect.ReleasePod:
			return true
		}
		return false
	}
	if slices.ContainsFunc(a.Effects, letsGo) || slices.ContainsFunc(b.Effects, letsGo) {
		return nil
	}
	return differ(a, b)
}

func decide(f fn.Registered, state []byte, batch []events.Event, now time.Time) fn.Decision {
	d, err := f.Decide(state, batch, now)
	if err != nil {
		panic(err)
	}
	return d
}

// watched is the function with a law that looks on.
func watched(t *rapid.T, f fn.Registered, law law) fn.Registered {
	real := f
	f.Decide = func(state []byte, batch []events.Event, now time.Time) (fn.Decision, error) {
		got, err := real.Decide(state, batch, now)
		if err == nil {
			if broken := law(real, state, batch, now, got); broken != nil {
				t.Fatalf("after %v:\n%v", batch, broken)
			}
		}
		return got, err
	}
	return f
}

func differ(a, b fn.Decision) error {
	if x, y := words(a.Effects), words(b.Effects); !slices.Equal(x, y) {
		return fmt.Errorf("effects %v\nor      %v", x, y)
	}
	if !bytes.Equal(a.State, b.State) {
		return fmt.Errorf("the effects are the same and the states are not:\n%s", difference(a.State, b.State))
	}
	return nil
}

// difference shows where two states begin to differ.
func difference(a, b []byte) string {
	x, errX := cbor.Diagnose(a)
	y, errY := cbor.Diagnose(b)
	if err := errors.Join(errX, errY); err != nil {
		return err.Error()
	}
	const around = 200
	i := 0
	for i < min(len(x), len(y)) && x[i] == y[i] {
		i++
	}
	from := max(0, i-around)
	return x[from:min(len(x), i+around)] + "\n" + y[from:min(len(y), i+around)]
}

// lasting leaves out what may rest for a moment: a status that only reports progress, and the timer that waits for it.
func lasting(effects []effect.Effect) []string {
	return words(slices.DeleteFunc(slices.Clone(effects), func(e effect.Effect) bool {
		switch e.(type) {
		case effect.WriteJobStatus, effect.WriteScheduleStatus, effect.SetTimer:
			return true
		}
		return false
	}))
}

func words(effects []effect.Effect) []string {
	var out []string
	for _, e := range effects {
		out = append(out, fmt.Sprintf("%v %v", e.Kind(), e))
	}
	return out
}
