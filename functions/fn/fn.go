// Package fn defines what a function is: Observe remembers, Plan decides.
//
//	state + events --Observe*--> state --Plan(now)--> state + effects
//
// Neither half does I/O, reads a clock, or fails. Plan decides from the state alone, never from the event that woke it,
// so a lost, repeated or late event can delay a decision but not change it.
package fn

import (
	"fmt"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Function is the whole behaviour of one kind of object.
type Function[S any] struct {
	// Name is the first token of the function's keys, its bucket, and its label in metrics.
	Name string
	// Version is the version of S. Raising it discards the states of older versions and takes inventory again.
	Version int
	// Wakes lists the types of the events that the function observes.
	Wakes []events.Type
	// Observe remembers an event. It must be idempotent and tolerate any order.
	Observe func(S, events.Event) S
	// Plan decides what to do now. It is called once after a batch of events has been observed.
	Plan func(S, time.Time) (S, []effect.Effect)
	// Rests reports whether nothing is left to do, so that the state may be forgotten after a while.
	Rests func(S) bool
	// Valid returns an error that names the law of its parts that a state breaks, nil if it breaks none. Only a bug of the
	// function can produce such a state. Nothing can be decided from it, so the engine forgets it like a state that cannot be
	// decoded.
	Valid func(S) error
}

// Decide folds a batch and plans once.
func (f Function[S]) Decide(s S, batch []events.Event, now time.Time) (S, []effect.Effect) {
	for _, e := range batch {
		s = f.Observe(s, e)
	}
	return f.Plan(s, now)
}

// Decision is the result of one Decide over encoded state.
type Decision struct {
	// State must be committed before any of the Effects is carried out.
	State   []byte
	Effects []effect.Effect
	// Rests is the result of the function's Rests for State.
	Rests bool
}

// Registered is a Function without its state type: the form that the engine works with.
type Registered struct {
	Name    string
	Version int
	Wakes   []events.Type
	// State is the erased type, for tests that inspect its shape.
	State reflect.Type
	// Decide decodes the state (nil is the empty one), folds the batch, plans, and encodes. It fails with ErrNewer, or if the
	// state cannot be decoded or is not valid; the remedy for the latter two is to forget the state.
	Decide func(state []byte, batch []events.Event, now time.Time) (Decision, error)
	// Valid returns the error that Decide would return for the state.
	Valid func(state []byte) error
}

// ErrNewer reports that a newer version of the function wrote the state. An older version must not touch it.
type ErrNewer struct{ Have, Want int }

func (e ErrNewer) Error() string {
	return fmt.Sprintf("state has version %d, this binary knows %d: leave it to the newer one", e.Have, e.Want)
}

// envelope is the encoded form. The version is outside of the state, so that it can be read without knowing S.
type envelope struct {
	_       struct{} `cbor:",toarray"`
	Version int
	State   cbor.RawMessage
}

// encoding is deterministic: equal states have equal bytes, so an unchanged state need not be written.
var encoding = must(cbor.EncOptions{Sort: cbor.SortCanonical, Time: cbor.TimeRFC3339Nano}.EncMode())
var decoding = must(cbor.DecOptions{MaxArrayElements: 1 << 20, MaxMapPairs: 1 << 20}.DecMode())

// Register erases the state type of f.
func Register[S any](f Function[S]) Registered {
	read := func(b []byte) (S, error) {
		s, err := decode[S](b, f.Version)
		if err == nil && f.Valid != nil {
			if broken := f.Valid(s); broken != nil {
				return s, fmt.Errorf("state is not valid: %w", broken)
			}
		}
		return s, err
	}
	return Registered{Name: f.Name, Version: f.Version, Wakes: f.Wakes, State: reflect.TypeFor[S](),
		Valid: func(b []byte) error { _, err := read(b); return err },
		Decide: func(b []byte, batch []events.Event, now time.Time) (Decision, error) {
			s, err := read(b)
			if err != nil {
				return Decision{}, err
			}
			s, effects := f.Decide(s, batch, now)
			inner, err := encoding.Marshal(s)
			if err != nil {
				return Decision{}, fmt.Errorf("encode state: %w", err)
			}
			out, err := encoding.Marshal(envelope{Version: f.Version, State: inner})
			if err != nil {
				return Decision{}, fmt.Errorf("encode state: %w", err)
			}
			return Decision{State: out, Effects: effects, Rests: f.Rests != nil && f.Rests(s)}, nil
		}}
}

// VersionOf returns the version of the function that has written the encoded state, whichever it is. It returns an error if the text is
// no encoded state.
func VersionOf(state []byte) (int, error) {
	var e envelope
	if err := decoding.Unmarshal(state, &e); err != nil {
		return 0, fmt.Errorf("decode state: %w", err)
	}
	return e.Version, nil
}

func decode[S any](b []byte, version int) (s S, err error) {
	if len(b) == 0 {
		return s, nil
	}
	var e envelope
	if err := decoding.Unmarshal(b, &e); err != nil {
		return s, fmt.Errorf("decode state: %w", err)
	}
	switch {
	case e.Version > version:
		return s, ErrNewer{Have: e.Version, Want: version}
	case e.Version < version:
		return s, nil // an older state is forgotten, never migrated: inventory is taken again
	}
	if err := decoding.Unmarshal(e.State, &s); err != nil {
		return s, fmt.Errorf("decode state: %w", err)
	}
	return s, nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
