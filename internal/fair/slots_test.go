package fair_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	_ "github.com/jobstream/jobstream/internal/dev/replay"
	"github.com/jobstream/jobstream/internal/fair"
)

// asker is a request for a slot.
type asker struct {
	tenant string
	ahead  bool
	cancel context.CancelFunc
	err    error
	over   atomic.Bool // Acquire has returned
	passed int         // slots that others got while its tenant had none
}

// world is a test's knowledge of the slots, in a synctest bubble, where the test can wait for all goroutines.
type world struct {
	*rapid.T
	slots            *fair.Slots
	n, share         int
	waiting, holding []*asker // in the order in which they came
}

// in creates slots and runs the test in a bubble; then all requests end.
func in(t *testing.T, act func(*world)) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any // rapid fails by a panic, which must leave the bubble
		synctest.Test(t, func(*testing.T) {
			w := &world{T: rt}
			defer func() {
				failure = recover()
				for _, a := range append(w.waiting, w.holding...) {
					a.cancel()
				}
			}()
			w.n, w.share = rapid.IntRange(1, 20).Draw(rt, "slots"), rapid.IntRange(1, 9).Draw(rt, "share")
			w.slots = fair.NewSlots(w.n, w.share)
			act(w)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

// ask makes a request for the tenant.
func (w *world) ask(tenant string) *asker { return w.request(tenant, false) }

func (w *world) request(tenant string, ahead bool) *asker {
	ctx, cancel := context.WithCancel(context.Background())
	a := &asker{tenant: tenant, ahead: ahead, cancel: cancel}
	w.waiting = append(w.waiting, a)
	go func() {
		if ahead {
			a.err = w.slots.AcquireAhead(ctx, tenant)
		} else {
			a.err = w.slots.Acquire(ctx, tenant)
		}
		a.over.Store(true)
	}()
	w.look()
	return a
}

// release releases the slot of the i-th holder.
func (w *world) release(i int) {
	a := w.holding[i]
	w.holding = slices.Delete(w.holding, i, i+1)
	w.slots.Release(a.tenant)
	w.look()
}

// giveUp cancels the i-th waiting request.
func (w *world) giveUp(i int) {
	a := w.waiting[i]
	a.cancel()
	synctest.Wait()
	if !a.over.Load() || !errors.Is(a.err, context.Canceled) {
		w.Fatalf("a cancelled request returned %v", a.err)
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	w.look()
}

// look records the slots granted since.
func (w *world) look() {
	synctest.Wait()
	for i := 0; i < len(w.waiting); i++ {
		a := w.waiting[i]
		if !a.over.Load() {
			continue
		}
		if a.err != nil {
			w.Fatalf("a slot was refused: %v", a.err)
		}
		w.waiting = slices.Delete(w.waiting, i, i+1)
		i--
		w.holding = append(w.holding, a)
		for _, other := range w.waiting {
			other.passed++
		}
	}
	for _, a := range w.waiting {
		if w.holds(a.tenant) > 0 {
			a.passed = 0
		}
	}
}

func (w *world) free() int { return w.n - len(w.holding) }

func (w *world) holds(tenant string) (n int) {
	for _, a := range w.holding {
		if a.tenant == tenant {
			n++
		}
	}
	return n
}

// firsts returns the oldest waiting request of each tenant.
func (w *world) firsts() map[string]*asker {
	firsts := map[string]*asker{}
	for _, a := range w.waiting {
		if firsts[a.tenant] == nil {
			firsts[a.tenant] = a
		}
	}
	return firsts
}

var tenants = []string{"a", "b", "c", "d", "e"}

// act does one random step.
func (w *world) act() {
	switch what := rapid.IntRange(0, 9).Draw(w.T, "act"); {
	case what < 6:
		w.request(rapid.SampledFrom(tenants).Draw(w.T, "tenant"), rapid.Bool().Draw(w.T, "ahead"))
	case what < 9 && len(w.holding) > 0:
		w.release(rapid.IntRange(0, len(w.holding)-1).Draw(w.T, "holder"))
	case len(w.waiting) > 0:
		w.giveUp(rapid.IntRange(0, len(w.waiting)-1).Draw(w.T, "waiting"))
	}
}

func TestNeverMoreSlotsAreHeldThanThereAre(t *testing.T) {
	in(t, func(w *world) {
		for range 60 {
			if w.act(); w.free() < 0 {
				w.Fatalf("%d of %d slots are held", len(w.holding), w.n)
			}
		}
	})
}

// TestNoRequestWaitsForAnAvailableSlot: the tenant of every waiting request already holds its share of the free slots.
func TestNoRequestWaitsForAnAvailableSlot(t *testing.T) {
	in(t, func(w *world) {
		for range 60 {
			w.act()
			for tenant := range w.firsts() {
				if held := w.holds(tenant); held < w.share*w.free() {
					w.Fatalf("%s waits with %d slots in hand, %d are free and its share is %d times that", tenant, held, w.free(), w.share)
				}
			}
		}
	})
}

func TestWithinATenantWhoComesFirstIsServedFirst(t *testing.T) {
	in(t, func(w *world) {
		for range 60 {
			before := slices.Clone(w.waiting)
			w.act()
			for i, a := range before {
				for _, first := range before[:i] {
					if a.tenant == first.tenant && a.ahead == first.ahead && slices.Contains(w.holding, a) && slices.Contains(w.waiting, first) {
						w.Fatalf("one of %s has overtaken another", a.tenant)
					}
				}
			}
		}
	})
}

// TestWhatGoesAheadLeavesEveryFourthTurn: what goes ahead does not stop what waits.
func TestWhatGoesAheadLeavesEveryFourthTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := fair.NewSlots(2, 1) // one for each of two tenants
		if err := shared.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var order []string
		for i := range 10 {
			name, acquire := fmt.Sprintf("waits %d", i+1), shared.Acquire
			if i >= 2 {
				name, acquire = fmt.Sprintf("ahead %d", i-1), shared.AcquireAhead
			}
			go func() {
				if acquire(t.Context(), "a") == nil {
					order = append(order, name)
					shared.Release("a")
				}
			}()
			synctest.Wait()
		}
		shared.Release("a")
		synctest.Wait()
		want := []string{"ahead 1", "ahead 2", "ahead 3", "waits 1", "ahead 4", "ahead 5", "ahead 6", "waits 2", "ahead 7", "ahead 8"}
		if !slices.Equal(order, want) {
			t.Errorf("got  %q\nwant %q", order, want)
		}
	})
}

// TestEachOtherTenantPassesAnEmptyOneOnceAtMost: no tenant starves, however greedy the others are.
func TestEachOtherTenantPassesAnEmptyOneOnceAtMost(t *testing.T) {
	in(t, func(w *world) {
		for range 60 {
			w.act()
			for tenant, first := range w.firsts() {
				if first.passed > len(tenants)-1 {
					w.Fatalf("%s has nothing and was passed %d times", tenant, first.passed)
				}
			}
		}
	})
}

// TestOneTenantAloneHasItsShareAndWhoComesFindsASlotAtOnce: even if no slot is ever released. A single slot cannot be shared.
func TestOneTenantAloneHasItsShareAndWhoComesFindsASlotAtOnce(t *testing.T) {
	in(t, func(w *world) {
		for range w.n + 5 {
			w.ask("greedy")
		}
		want := (w.n*w.share + w.share) / (w.share + 1) // rounded up
		if got := w.holds("greedy"); got != want {
			w.Fatalf("alone it got %d of %d slots with a share of %d, want %d", got, w.n, w.share, want)
		}
		if w.free() > 0 {
			if newcomer := w.ask("newcomer"); !newcomer.over.Load() {
				w.Fatalf("a newcomer waits and %d are free", w.free())
			}
		}
	})
}

// TestANewcomerAmongGreedyTenantsWaitsForOneSlotOfEachAtMost: even if there are so many that none is free.
func TestANewcomerAmongGreedyTenantsWaitsForOneSlotOfEachAtMost(t *testing.T) {
	in(t, func(w *world) {
		greedy := rapid.IntRange(1, 30).Draw(w.T, "greedy")
		for range w.n {
			for i := range greedy {
				w.ask(fmt.Sprint("greedy-", i))
			}
		}
		newcomer := w.ask("newcomer")
		for waits := 0; !newcomer.over.Load(); waits++ {
			if waits > greedy {
				w.Fatalf("among %d the newcomer waits for more than %d slots to be given back", greedy, waits)
			}
			w.release(rapid.IntRange(0, len(w.holding)-1).Draw(w.T, "holder"))
		}
	})
}

func TestWhoComesTooLateGetsNothing(t *testing.T) {
	s := fair.NewSlots(1, 1)
	if err := s.Acquire(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Acquire(over, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Release("a")
	if err := s.Acquire(t.Context(), "b"); err != nil {
		t.Error(err)
	}
}

// TestNoSlotIsLostWhereGivingUpMeetsGettingOne: cancellation and grant may coincide, and either may win.
func TestNoSlotIsLostWhereGivingUpMeetsGettingOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fair.NewSlots(1, 1)
		for range 100 {
			if err := s.Acquire(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			over, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			go func() { got <- s.Acquire(over, "b") }()
			synctest.Wait()
			cancel()
			s.Release("a")
			if err := <-got; err == nil {
				s.Release("b")
			}
		}
		in, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Acquire(in, "c"); err != nil {
			t.Errorf("all slots are released, and a request gets none: %v", err)
		}
	})
}

func BenchmarkAcquire(b *testing.B) {
	s := fair.NewSlots(64, 3)
	ctx := context.Background()
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			_ = s.Acquire(ctx, "a")
			s.Release("a")
		}
	})
	b.Run("contended", func(b *testing.B) {
		b.SetParallelism(200)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				_ = s.Acquire(ctx, "a")
				s.Release("a")
			}
		})
	})
}

// A single tenant has its share. While another is present, it has a smaller one: the slots beyond it are not taken away, but not
// granted again. Some time after the other's last request it has the larger share again.
func TestOneTenantHasLessWhileAnotherIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 64
		s := fair.NewSlots(n, 1).BesideOthers(3, 10*time.Second)
		var got atomic.Int64
		end, stop := context.WithCancel(t.Context())
		for range 2 * n { // it always wants more than it gets
			go func() {
				for end.Err() == nil && s.Acquire(end, "greedy") == nil {
					got.Add(1)
					<-time.After(time.Second)
					got.Add(-1)
					s.Release("greedy")
				}
			}()
		}
		<-time.After(3 * time.Second)
		synctest.Wait()
		if held := got.Load(); held != n/2 {
			t.Errorf("alone it has %d", held)
		}
		if err := s.Acquire(t.Context(), "newcomer"); err != nil { // at once: the clock of this test does not move
			t.Fatal(err)
		}
		s.Release("newcomer")
		<-time.After(2500 * time.Millisecond)
		synctest.Wait()
		if held := got.Load(); held != n/4 {
			t.Errorf("beside another it has %d", held)
		}
		<-time.After(12 * time.Second)
		synctest.Wait()
		if held := got.Load(); held != n/2 {
			t.Errorf("alone again it has %d", held)
		}
		stop()
		<-time.After(2 * time.Second) // until all have released their slots
	})
}
