package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// message is one fact on the bus until it is acknowledged.
type message struct {
	key       events.Key
	partition int
	event     events.Event
	// until is when the bus delivers the message again; zero if no worker holds it.
	until time.Time
}

// bus is the part of JetStream that matters here: facts in partitions, delivered at least once and in any order; timers; state
// with compare-and-set.
type bus struct {
	facts    []*message
	timers   map[string]timer
	firing   []timer // read by the server and not yet stored
	states   map[events.Key]state
	sequence uint64
	// crossed is called when one version of a function overwrites the state of another version.
	crossed func(key events.Key, was, is int)
	// wired makes every fact arrive as its encoding can carry it.
	wired bool
	// tight returns the largest size of a key's state, 0 for any size.
	tight func(key events.Key) int
}

type timer struct {
	key  events.Key
	name string
	at   time.Time
}

type state struct {
	data     []byte
	revision uint64
}

func newBus() *bus { return &bus{timers: map[string]timer{}, states: map[events.Key]state{}} }

func (b *bus) publish(key events.Key, e events.Event) {
	if b.wired {
		e = wire(key, e)
	}
	b.facts = append(b.facts, &message{key: key, partition: key.Partition(), event: e})
}

// wire returns the event as a reconciler decodes it.
func wire(key events.Key, e events.Event) events.Event {
	data, err := events.Encode(events.Fact{Cluster: "sim", Key: key, Event: e})
	if err != nil {
		panic(err)
	}
	f, err := events.Decode(data)
	if err != nil {
		panic(err)
	}
	return f.Event
}

// remove acknowledges a message. It may have been lost already.
func (b *bus) remove(m *message) {
	if i := slices.Index(b.facts, m); i >= 0 {
		b.facts = slices.Delete(b.facts, i, i+1)
	}
}

// Load implements engine.Store.
func (b *bus) Load(_ context.Context, key events.Key) ([]byte, uint64, error) {
	s := b.states[key]
	return s.data, s.revision, nil
}

// Save implements engine.Store.
func (b *bus) Save(_ context.Context, key events.Key, data []byte, revision uint64, _ bool) (uint64, error) {
	if b.states[key].revision != revision {
		return 0, fmt.Errorf("%s: %w", key, engine.ErrConflict)
	}
	if most := b.tight(key); most > 0 && len(data) > most {
		return 0, tooLarge{fmt.Errorf("%d bytes, at most %d fit", len(data), most)}
	}
	if was, is := version(b.states[key].data), version(data); was != 0 && was != is {
		b.crossed(key, was, is)
	}
	b.sequence++
	b.states[key] = state{data: data, revision: b.sequence}
	return b.sequence, nil
}

// tooLarge is an error that no retry cures.
type tooLarge struct{ error }

func (tooLarge) Permanent() bool { return true }

// Forget implements engine.Store.
func (b *bus) Forget(_ context.Context, key events.Key) error {
	delete(b.states, key)
	return nil
}

// Set implements engine.Timers.
func (b *bus) Set(_ context.Context, key events.Key, name string, at time.Time) error {
	b.timers[key.String()+name] = timer{key: key, name: name, at: at}
	return nil
}

// version returns the version of a state from its envelope, an array of the version and the state itself; 0 if there is none.
func version(data []byte) (v int) {
	var envelope []cbor.RawMessage
	if cbor.Unmarshal(data, &envelope) == nil && len(envelope) > 0 {
		_ = cbor.Unmarshal(envelope[0], &v) // stays 0 if it is no number
	}
	return v
}

// clear loses everything.
func (b *bus) clear() {
	b.facts, b.timers, b.firing, b.states = nil, map[string]timer{}, nil, map[events.Key]state{}
	b.sequence += 1000 // as a new server does: a revision that a worker remembers must not match by chance
}

// fire publishes the timers that are due, or one that is nearly due: real timers may fire a second early. Like the server it
// publishes in one step and removes in the next, which also removes a timer set under the same name in between.
func (b *bus) fire(now time.Time) {
	for _, t := range b.firing {
		delete(b.timers, t.key.String()+t.name)
		b.publish(t.key, events.TimerFired{Name: t.name, At: t.at})
	}
	b.firing = nil
	for _, id := range slices.Sorted(maps.Keys(b.timers)) {
		if t := b.timers[id]; !t.at.After(now.Add(time.Second)) {
			b.firing = append(b.firing, t)
		}
	}
}

// next returns the earliest timer; zero if there is none.
func (b *bus) next() (at time.Time) {
	for _, t := range b.timers {
		if at.IsZero() || t.at.Before(at) {
			at = t.at
		}
	}
	return at
}
