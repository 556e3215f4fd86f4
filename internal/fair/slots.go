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
	"time"
)

// Slots lets at most a number of holders be at work at once. A tenant may take one more while it holds less than share times
// as many as are free (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). So one alone
// gets share of share+1 parts, and what it leaves free is there for whoever comes, however long its own are held. As more
// tenants come, each may have less, and what is given back goes to them in turns.
//
// A Slots may be used from any number of goroutines.
type Slots struct {
	share  int
	parts  int           // while others are there, a tenant gets one of parts+1 parts; 0 where that makes no difference
	within time.Duration // for so long after they came last they are there

	mu      sync.Mutex
	free    int
	last    [2]visit           // the last two tenants that came, the last one first
	tenants map[string]*tenant // those that hold something or wait
	ring    []*tenant          // those that wait and may not take one now, the one whose turn is next first
}

// visit is when a tenant came last.
type visit struct {
	name string
	at   time.Time
}

// tenant is one of those that share. Nobody waits for it while it may take a slot.
type tenant struct {
	name    string
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

// BesideOthers makes one tenant get no more than one of parts+1 parts (parts is 1 or more) while another one is there, which means
// that it came within that time. So whoever has the place for itself loses nothing, and whoever has company leaves it more than
// the next slot: what is served to many at once is served late to all of them. Call it before anything else; it returns the Slots.
func (s *Slots) BesideOthers(parts int, within time.Duration) *Slots {
	if parts < 1 || within <= 0 {
		panic(fmt.Sprintf("fair: one of %d+1 parts within %v: both have to be more than nothing", parts, within))
	}
	s.parts, s.within = parts, within
	return s
}

// comes notes that the tenant is there.
func (s *Slots) comes(name string) {
	if s.parts == 0 {
		return
	}
	if s.last[0].name != name {
		s.last[1] = s.last[0]
	}
	s.last[0] = visit{name, time.Now()}
}

// company says that another tenant is there.
func (s *Slots) company(t *tenant) bool {
	for _, v := range s.last {
		if v.name != t.name && !v.at.IsZero() && time.Since(v.at) < s.within {
			return true
		}
	}
	return false
}

// Acquire takes a slot for the tenant, and waits until it may have one. Its only error is that of the context, and then it
// has none. What it has taken must be given back by Release.
func (s *Slots) Acquire(ctx context.Context, name string) error {
	s.mu.Lock()
	s.comes(name)
	t := s.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		s.tenants[name] = t
	}
	if len(t.waiting) > 0 {
		s.grant() // it may have more by now than when those began to wait
	}
	if len(t.waiting) == 0 && s.may(t) {
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

// may says that the tenant may take a slot now. It grows by time alone only where company ends; whoever waits then gets it with the
// next slot that anybody of its own asks for or gives back.
func (s *Slots) may(t *tenant) bool {
	if s.parts > 0 && s.company(t) {
		return t.held*s.parts < s.free
	}
	return t.held < s.share*s.free
}

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
