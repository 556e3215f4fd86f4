// Package fair shares what is scarce among tenants, so that none waits for what another has begun.
//
//	  "a" holds 3, two more wait     "b" comes
//	.-----------------------------.      |
//	| a | a | a |   |   |   |   |   |<---'      finds a free slot at once: a may not take the last ones
//	'-----------------------------'
//	where none is free, the tenants take turns: a b c a b c, each its own in the order in which they came
package fair

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Slots lets at most a number of holders be at work at once. A tenant may take one more while it holds less than share times
// as many as are free (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). So one alone
// gets share of share+1 parts, and what it leaves free is there for whoever comes, however long its own are held. As more
// tenants come, each may have less, and what is given back goes to them in turns.
//
// A Slots may be used from any number of goroutines.
type Slots struct {
	share int

	mu      sync.Mutex
	free    int
	tenants map[string]*tenant // those that hold something or wait
	ring    []*tenant          // those that wait and may not take one now, the one whose turn is next first
}

// tenant is one of those that share. Nobody waits for it while it may take a slot.
type tenant struct {
	held    int
	waiting []chan struct{} // each is closed when it has got its slot; first come, first served
}

// NewSlots makes n slots, 1 or more, of which one tenant alone gets share of share+1 parts, rounded up; share is 1 or more.
// It panics on anything else, which is a mistake of the program.
func NewSlots(n, share int) *Slots {
	if n < 1 || share < 1 {
		panic(fmt.Sprintf("fair: %d slots and a share of %d: both have to be 1 or more", n, share))
	}
	return &Slots{share: share, free: n, tenants: map[string]*tenant{}}
}

// Acquire takes a slot for the tenant, and waits until it may have one. Its only error is that of the context, and then it
// has none. What it has taken must be given back by Release.
func (s *Slots) Acquire(ctx context.Context, name string) error {
	s.mu.Lock()
	t := s.tenants[name]
	if t == nil {
		t = &tenant{}
		s.tenants[name] = t
	}
	if s.may(t) {
		s.take(t)
		s.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	if len(t.waiting) == 0 {
		s.ring = append(s.ring, t)
	}
	t.waiting = append(t.waiting, granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
		s.cancel(name, t, granted)
		return ctx.Err()
	}
}

// Release gives back a slot of the tenant.
func (s *Slots) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[name]
	if t == nil || t.held == 0 {
		panic("fair: a slot is given back that nobody holds")
	}
	s.giveBack(name, t)
}

// may says that the tenant may take a slot now. It never may while others of its own wait.
func (s *Slots) may(t *tenant) bool { return t.held < s.share*s.free }

func (s *Slots) take(t *tenant) {
	s.free--
	t.held++
}

func (s *Slots) giveBack(name string, t *tenant) {
	s.free++
	t.held--
	s.grant()
	s.forget(name, t)
}

// grant lets those in who may, in turns; who may not when its turn comes lets the next one go first. In the end none of them
// may. While a slot is free, there are fewer of those than slots.
func (s *Slots) grant() {
	for refused := 0; s.free > 0 && refused < len(s.ring); {
		t := s.ring[0]
		s.ring = s.ring[1:]
		if s.may(t) {
			s.take(t)
			close(t.waiting[0])
			t.waiting = t.waiting[1:]
		} else {
			refused++
		}
		if len(t.waiting) > 0 {
			s.ring = append(s.ring, t)
		}
	}
}

// cancel is for one who no longer waits. It may have got its slot in the very moment.
func (s *Slots) cancel(name string, t *tenant, granted chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(t.waiting, granted)
	if i < 0 {
		s.giveBack(name, t)
		return
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	if len(t.waiting) == 0 {
		s.ring = slices.DeleteFunc(s.ring, func(other *tenant) bool { return other == t })
	}
	s.forget(name, t)
}

// forget drops a tenant that holds nothing and waits for nothing.
func (s *Slots) forget(name string, t *tenant) {
	if t.held == 0 && len(t.waiting) == 0 {
		delete(s.tenants, name)
	}
}
