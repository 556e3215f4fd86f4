// Package fntest contains the laws of functions/fn as a table. Any function can be checked against it: the tests of the catalog
// use simulated worlds, and the test of a function of your own may use any facts that it observes.
//
//	for _, law := range fntest.Laws {
//		t.Run(law.Name, func(t *testing.T) {
//			f := fntest.Watch(f, law, func(err error) { t.Error(err) })
//			... // decide as the engine would, with random facts
//		})
//	}
package fntest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
)

// Law must hold for every decision of every function.
type Law struct {
	// Name is the law in a sentence.
	Name string
	// Check returns an error that describes how the decision breaks the law, nil if it does not. It may make the function decide
	// again.
	Check func(f fn.Registered, d Decided) error
}

// Decided is one decision and its input.
type Decided struct {
	State []byte
	Batch []events.Event
	Now   time.Time
	Got   fn.Decision
}

// Laws are those of the package functions: the engine repeats, reorders and forgets, and the laws make that harmless.
var Laws = []Law{
	{"the same state and facts give the same decision", isDeterministic},
	{"a repeated fact changes nothing", isIdempotent},
	{"the order of observations does not matter", isCommutative},
	{"what was decided and not seen done is decided again", repeatsItself},
	{"a function that rests decides nothing", restsQuietly},
}

// Watch returns the function with a check of each of its decisions against a law; broken receives the error of each that breaks
// it.
func Watch(f fn.Registered, law Law, broken func(error)) fn.Registered {
	real := f
	f.Decide = func(state []byte, batch []events.Event, now time.Time) (fn.Decision, error) {
		got, err := real.Decide(state, batch, now)
		if err == nil {
			if why := law.Check(real, Decided{state, batch, now, got}); why != nil {
				broken(fmt.Errorf("after %v:\n%w", batch, why))
			}
		}
		return got, err
	}
	return f
}

func isDeterministic(f fn.Registered, d Decided) error {
	return again(f, d.State, d.Batch, d, differ)
}

func isIdempotent(f fn.Registered, d Decided) error {
	refusals, missed := 0, map[types.UID]bool{}
	for i, e := range d.Batch {
		switch e := e.(type) {
		case events.PodGone:
			missed[e.Pod.UID] = missed[e.Pod.UID] || e.Pod.Version == 0
		case events.PodObserved:
			if missed[e.Pod.UID] {
				return nil // a request that found no Pod has no version: after an observation it tells more than before it
			}
		}
		if _, ok := e.(events.JobListed); ok && i > 0 && !known(d.State) {
			return nil // events before the inventory are not folded the first time
		}
		if _, ok := e.(events.EffectRefused); ok {
			refusals++
		}
	}
	if refusals > 1 {
		return nil // only the last is recognized; the others at most lengthen the delay
	}
	return again(f, d.State, slices.Concat(d.Batch, d.Batch), d, unlessStray)
}

func isCommutative(f fn.Registered, d Decided) error {
	for _, e := range d.Batch {
		switch e.(type) {
		case events.PodObserved, events.JobObserved, events.ScheduledJobObserved, events.RunObserved:
		default:
			return nil // a snapshot, a deletion or a refusal depends on what is known by then
		}
	}
	turned := slices.Clone(d.Batch)
	slices.Reverse(turned)
	return again(f, d.State, turned, d, func(a, b fn.Decision) error {
		if known(d.State) && known(a.State) != known(b.State) {
			return nil // a status that shows more than the state knew by then makes it take inventory again; after the Pods it does not
		}
		return unlessStray(a, b)
	})
}

func repeatsItself(f fn.Registered, d Decided) error {
	return again(f, d.Got.State, nil, d, func(first, then fn.Decision) error {
		wanted := lasting(then.Effects)
		for _, e := range lasting(first.Effects) {
			if !slices.Contains(wanted, e) {
				return fmt.Errorf("first %v\nthen  %v", e, wanted)
			}
		}
		return nil
	})
}

func restsQuietly(_ fn.Registered, d Decided) error {
	if d.Got.Rests && len(d.Got.Effects) > 0 {
		return fmt.Errorf("rests and wants %v", d.Got.Effects)
	}
	return nil
}

// again makes another decision, from another state or other facts, and compares the two.
func again(f fn.Registered, state []byte, batch []events.Event, d Decided, compare func(first, then fn.Decision) error) error {
	then, err := f.Decide(state, batch, d.Now)
	if err != nil {
		return err
	}
	return compare(d.Got, then)
}

// known reports whether the inventory has been taken: before it the state has almost nothing.
func known(state []byte) bool {
	var parts []cbor.RawMessage
	var fields struct{ Known bool }
	return len(state) > 0 && cbor.Unmarshal(state, &parts) == nil && cbor.Unmarshal(parts[len(parts)-1], &fields) == nil && fields.Known
}

// unlessStray compares two decisions except for effects that delete, adopt or release Pods or remove their finalizers: a late observation may look like a stray, or
// like a Pod that another client has created, in one order of facts and not in another, and the precondition of the effect makes
// that harmless.
func unlessStray(a, b fn.Decision) error {
	onStray := func(e effect.Effect) bool {
		switch e.(type) {
		case effect.DeletePod, effect.RemoveFinalizer, effect.AdoptPod, effect.ReleasePod:
			return true
		}
		return false
	}
	if slices.ContainsFunc(a.Effects, onStray) || slices.ContainsFunc(b.Effects, onStray) {
		return nil
	}
	return differ(a, b)
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

// difference returns where two states begin to differ.
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

// lasting omits what may be delayed for a moment: a status that only reports progress, and the timer that waits for it.
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
