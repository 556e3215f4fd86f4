package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/internal/engine"
)

// asked is a Store that counts its loads.
type asked struct {
	memories
	loads, saves int
	// saving, if not nil, runs while a Save is on its way back.
	saving func()
	refuse error
}

func newAsked() *asked { return &asked{memories: memories{all: map[events.Key]memory{}}} }

func (a *asked) Load(ctx context.Context, key events.Key) ([]byte, uint64, error) {
	a.loads++
	return a.memories.Load(ctx, key)
}

func (a *asked) Save(ctx context.Context, key events.Key, data []byte, revision uint64, rests bool) (uint64, error) {
	a.saves++
	if a.refuse != nil {
		return 0, a.refuse
	}
	saved, err := a.memories.Save(ctx, key, data, revision, rests)
	if a.saving != nil {
		a.saving()
	}
	return saved, err
}

func (a *asked) Forget(_ context.Context, key events.Key) error {
	delete(a.all, key)
	return nil
}

// TestRecent: which states a process need not read again.
func TestRecent(t *testing.T) {
	key := events.Key{Function: "count", Namespace: "shop", UID: "7"}
	for _, c := range []struct {
		name string
		// after the process has saved revision 1
		then  func(t *testing.T, a *asked, r *engine.Recent)
		loads int
		want  string
	}{
		{"its own", func(*testing.T, *asked, *engine.Recent) {}, 0, "one"},
		{"its own, saved again", func(t *testing.T, _ *asked, r *engine.Recent) {
			if _, err := r.Save(t.Context(), key, []byte("two"), 1, false); err != nil {
				t.Fatal(err)
			}
		}, 0, "two"},
		{"another reconciler was faster", func(t *testing.T, a *asked, r *engine.Recent) {
			a.all[key] = memory{[]byte("theirs"), 5}
			if _, err := r.Save(t.Context(), key, []byte("two"), 1, false); !errors.Is(err, engine.ErrConflict) {
				t.Errorf("saved over another's state: %v", err)
			}
		}, 1, "theirs"},
		{"a Save without an answer may have been done", func(t *testing.T, a *asked, r *engine.Recent) {
			a.refuse = context.DeadlineExceeded
			a.all[key] = memory{[]byte("two"), 2}
			if _, err := r.Save(t.Context(), key, []byte("two"), 1, false); err == nil {
				t.Error("no error")
			}
		}, 1, "two"},
		{"its answer comes after that of a newer one, saved beside the turn", func(t *testing.T, a *asked, r *engine.Recent) {
			a.saving = func() {
				a.saving = nil
				if _, err := r.Save(t.Context(), key, []byte("three"), 2, false); err != nil {
					t.Error(err)
				}
			}
			if _, err := r.Save(t.Context(), key, []byte("two"), 1, false); err != nil {
				t.Fatal(err)
			}
		}, 0, "three"},
		{"its answer comes after that of a newer one, which was dropped meanwhile", func(t *testing.T, a *asked, r *engine.Recent) {
			a.saving = func() {
				a.saving = nil
				if _, err := r.Save(t.Context(), key, []byte("three"), 2, false); err != nil {
					t.Error(err)
				}
				r.Drop(key)
			}
			if _, err := r.Save(t.Context(), key, []byte("two"), 1, false); err != nil {
				t.Fatal(err)
			}
		}, 1, "three"},
		{"the bus was lost, and counts revisions from the start", func(t *testing.T, a *asked, r *engine.Recent) {
			clear(a.all)
			if _, err := r.Save(t.Context(), key, []byte("new"), 0, false); err != nil {
				t.Fatal(err)
			}
		}, 0, "new"},
		{"it was forgotten", func(t *testing.T, _ *asked, r *engine.Recent) {
			if err := r.Forget(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}, 1, ""},
		{"the partition was released or taken", func(_ *testing.T, _ *asked, r *engine.Recent) { r.DropPartition(key.Partition()) }, 1, "one"},
		{"another partition was", func(_ *testing.T, _ *asked, r *engine.Recent) {
			r.DropPartition((key.Partition() + 1) % events.Partitions)
		}, 0, "one"},
		{"the partition was released and taken while a Save was on its way back", func(t *testing.T, a *asked, r *engine.Recent) {
			a.saving = func() {
				r.DropPartition(key.Partition())
				a.all[key] = memory{[]byte("theirs"), 5}
			}
			if _, err := r.Save(t.Context(), key, []byte("two"), 1, false); err != nil {
				t.Fatal(err)
			}
		}, 1, "theirs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsked()
			r := engine.NewRecent(a)
			if _, err := r.Save(t.Context(), key, []byte("one"), 0, false); err != nil {
				t.Fatal(err)
			}
			c.then(t, a, r)
			got, revision, err := r.Load(t.Context(), key)
			if err != nil || string(got) != c.want || revision != a.all[key].revision || a.loads != c.loads {
				t.Errorf("%q at revision %d after %d requests, %v; want %q after %d", got, revision, a.loads, err, c.want, c.loads)
			}
		})
	}
}

// TestFactsForTheNewestState: a turn trusts a remembered state about observations, and not about what another reconciler's state may wait for: a
// Pod of which only that one knows is gone.
func TestFactsForTheNewestState(t *testing.T) {
	key := events.Key{Function: "count", Namespace: "shop", UID: "7"}
	for _, c := range []struct {
		fact  events.Event
		loads int
	}{
		{events.JobObserved{}, 0}, {events.PodObserved{}, 0}, {events.ScheduledJobObserved{}, 0}, {events.RunObserved{}, 0},
		{events.JobGone{}, 1}, {events.PodGone{}, 1}, {events.ScheduledJobGone{}, 1}, {events.RunGone{}, 1},
		{events.TimerFired{}, 1}, {events.JobListed{}, 1}, {events.JobPartListed{}, 1}, {events.ScheduleListed{}, 1}, {events.ScheduleDue{}, 1},
	} {
		a := newAsked()
		r := engine.NewRecent(a)
		if _, err := r.Save(t.Context(), key, []byte("one"), 0, false); err != nil {
			t.Fatal(err)
		}
		if err := engine.NewTurn(fn.Registered{}, r, key, events.PodObserved{}, c.fact).Load(t.Context()); err != nil || a.loads != c.loads {
			t.Errorf("%s: %d requests, %v; want %d", c.fact.Type(), a.loads, err, c.loads)
		}
	}
}

// TestRecentIsBounded: what was used last stays, whatever the number and the size of states.
func TestRecentIsBounded(t *testing.T) {
	a := newAsked()
	r := engine.NewRecent(a)
	keyOf := func(i int) events.Key {
		return events.Key{Function: "count", Namespace: "shop", UID: types.UID(fmt.Sprint(i))}
	}
	const states, size = 40, 1 << 20
	for i := range states {
		if _, err := r.Save(t.Context(), keyOf(i), make([]byte, size), 0, false); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Load(t.Context(), keyOf(0)); err != nil { // in use all the time
			t.Fatal(err)
		}
	}
	if a.loads != 0 {
		t.Errorf("the state in use was read %d times", a.loads)
	}
	for i := range states {
		if _, _, err := r.Load(t.Context(), keyOf(i)); err != nil {
			t.Fatal(err)
		}
	}
	if remembered := states - a.loads; remembered < 5 || remembered > 8 {
		t.Errorf("%d states of 1 MiB are remembered", remembered)
	}
}

// TestWhatAStateTakes: its key and its place in the map count, too, so that the number of empty states is bounded.
func TestWhatAStateTakes(t *testing.T) {
	key := events.Key{Function: "count", Namespace: "shop", UID: "7"}
	const all, place = 8 << 20, 256 + len("shop") + len("7")
	for size, loads := range map[int]int{all - place: 0, all - place + 1: 1} {
		a := newAsked()
		r := engine.NewRecent(a)
		if _, err := r.Save(t.Context(), key, make([]byte, size), 0, false); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Load(t.Context(), key); err != nil || a.loads != loads {
			t.Errorf("a state of %d bytes: %d requests, %v; want %d", size, a.loads, err, loads)
		}
	}
}

// TestAnEchoCostsTheBusNothing: a fact that changes nothing is acknowledged without a request, and a state that is lost is read again.
func TestAnEchoCostsTheBusNothing(t *testing.T) {
	a := newAsked()
	b := start(t, counter(), func(c *engine.Config) { c.Store = a })
	b.act = gone
	key := events.Key{Function: "count", Namespace: "shop", UID: "7"}
	b.Deliver(echo{fact: fact{b, "a"}, key: key})
	b.await(t, "ack a")
	before := a.loads
	b.Deliver(echo{fact: fact{b, "b"}, key: key, event: events.JobObserved{}})
	b.await(t, "ack b")
	if before != 1 || a.loads != before {
		t.Errorf("%d requests for the first fact, %d for its echo", before, a.loads-before)
	}
	b.Release(key.Partition(), time.Second)
	b.Take(key.Partition())
	b.Deliver(echo{fact: fact{b, "c"}, key: key, event: events.JobObserved{}})
	b.await(t, "ack c")
	if a.loads != before+1 {
		t.Errorf("%d requests after another reconciler may have served the key", a.loads-before)
	}
}

// TestANewJobIsNotAskedFor: the bus has no state of it, and says so when the first one is saved. Where it has one, that counts.
func TestANewJobIsNotAskedFor(t *testing.T) {
	type state struct{ Seen []string }
	f := fn.Register(fn.Function[state]{Name: "count", Version: 1,
		Observe: func(s state, e events.Event) state {
			if j := e.(events.JobObserved).Job; !slices.Contains(s.Seen, j.Name) && j.Name != "foreign" {
				s.Seen = append(s.Seen, j.Name)
			}
			return s
		},
		Rests: func(s state) bool { return len(s.Seen) == 0 },
		Plan:  func(s state, _ time.Time) (state, []effect.Effect) { return s, nil }})
	created := func(name string) events.Event { return events.JobObserved{Job: events.Job{Name: name, Generation: 1}} }
	edited := events.JobObserved{Job: events.Job{Name: "edited", Generation: 2}}
	for _, c := range []struct {
		name   string
		before []events.Event // of another reconciler
		facts  []events.Event
		loads  int
		saves  int // asked for
		want   []string
	}{
		{"a new Job", nil, []events.Event{created("a")}, 0, 1, []string{"a"}},
		{"it has a state already", []events.Event{edited}, []events.Event{created("a")}, 1, 2, []string{"edited", "a"}},
		{"the state knows it already", []events.Event{created("a")}, []events.Event{created("a")}, 1, 1, []string{"a"}},
		{"nothing to remember, by an empty state", nil, []events.Event{created("foreign")}, 1, 0, nil},
		{"a Job that somebody has begun", nil, []events.Event{edited}, 1, 1, []string{"edited"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsked()
			for _, facts := range [][]events.Event{c.before, c.facts} {
				if a.loads, a.saves = 0, 0; len(facts) > 0 {
					take(t, engine.NewTurn(f, engine.NewRecent(a), key, facts...))
				}
			}
			if a.loads != c.loads || a.saves != c.saves {
				t.Errorf("%d loads and %d saves, want %d and %d", a.loads, a.saves, c.loads, c.saves)
			}
			for _, name := range c.want {
				if !a.remembers(key, name) {
					t.Errorf("the state has forgotten %s: %q", name, a.all[key].state)
				}
			}
		})
	}
}

// take takes a turn without effects.
func take(t *testing.T, turn *engine.Turn) {
	t.Helper()
	for range 3 {
		if err := errors.Join(turn.Load(t.Context()), turn.Decide(time.Now())); err != nil {
			t.Fatal(err)
		}
		err := turn.Commit(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, engine.ErrConflict) {
			t.Fatal(err)
		}
	}
	t.Fatal("a conflict without end")
}

// echo is a fact about another key, of another type.
type echo struct {
	fact
	key   events.Key
	event events.Event
}

func (e echo) Key() events.Key { return e.key }

func (e echo) Event() events.Event {
	if e.event == nil {
		return e.fact.Event()
	}
	return e.event
}
