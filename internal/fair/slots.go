// Package fair shares slots among tenants, so that no tenant waits for the work of another.
//
//	  "a" holds 3, two more wait     "b" comes
//	.-----------------------------.      |
//	| a | a | a |   |   |   |   |   |<---'      finds a free slot at once: a may not take the last ones
//	'-----------------------------'
//	if none is free, the tenants take turns: a b c a b c; within a tenant, first come, first served, except for what may go ahead
package fair

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Slots limits the number of concurrent holders. A tenant may take one more slot while it holds less than share times as many as
// are free (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). So a single tenant gets
// share of share+1 parts, and the rest is free for the next tenant, however long the first holds its slots. With more tenants
// each may have less, and released slots go to them in turns.
//
// A Slots may be used from any number of goroutines.
type Slots struct {
	share  int
	parts  int           // beside others, a tenant gets one of parts+1 parts; 0 for no such limit
	within time.Duration // a tenant counts as present for this long after its last request

	mu      sync.Mutex
	free    int
	last    [2]visit           // the last two tenants that came, the latest first
	tenants map[string]*tenant // tenants that hold a slot or wait
	ring    []*tenant          // tenants that wait and may not take a slot now, the next in turn first
}

// visit is when a tenant came last.
type visit struct {
	name string
	at   time.Time
}

// tenant is one of the sharing tenants. Its requests wait only while it may not take a slot.
type tenant struct {
	name    string
	held    int
	waiting []chan struct{} // each is closed when its slot is granted; first come, first served
	ahead   []chan struct{} // the same for those that go ahead of them
	passed  int             // how many have gone ahead of the first in waiting
}

// passMost is how many requests in a row may go ahead of one that waits.
const passMost = 3

// waits returns how many of its requests wait.
func (t *tenant) waits() int { return len(t.ahead) + len(t.waiting) }

// next removes and returns the request that is next.
func (t *tenant) next() (granted chan struct{}) {
	if len(t.ahead) > 0 && (len(t.waiting) == 0 || t.passed < passMost) {
		granted, t.ahead = t.ahead[0], t.ahead[1:]
		t.passed++
		return granted
	}
	granted, t.waiting = t.waiting[0], t.waiting[1:]
	t.passed = 0
	return granted
}

// NewSlots returns n slots, 1 or more, of which a single tenant gets share of share+1 parts, rounded up; share is 1 or more. It
// panics on other values, which are programming errors.
func NewSlots(n, share int) *Slots {
	if n < 1 || share < 1 {
		panic(fmt.Sprintf("fair: %d slots and a share of %d: both have to be 1 or more", n, share))
	}
	return &Slots{share: share, free: n, tenants: map[string]*tenant{}}
}

// BesideOthers limits a tenant to one of parts+1 parts (parts is 1 or more) while another tenant has made a request within that
// time. A single tenant loses nothing by that, and beside others it leaves them more than the next slot: a server that works on
// many requests at once answers all of them late. Call it before any other method; it returns the Slots.
func (s *Slots) BesideOthers(parts int, within time.Duration) *Slots {
	if parts < 1 || within <= 0 {
		panic(fmt.Sprintf("fair: one of %d+1 parts within %v: both have to be more than nothing", parts, within))
	}
	s.parts, s.within = parts, within
	return s
}

// comes records a request of the tenant.
func (s *Slots) comes(name string) {
	if s.parts == 0 {
		return
	}
	if s.last[0].name != name {
		s.last[1] = s.last[0]
	}
	s.last[0] = visit{name, time.Now()}
}

// company reports whether another tenant is present.
func (s *Slots) company(t *tenant) bool {
	for _, v := range s.last {
		if v.name != t.name && !v.at.IsZero() && time.Since(v.at) < s.within {
			return true
		}
	}
	return false
}

// Acquire takes a slot for the tenant, and waits until it may have one. It returns an error only if the context ends, and then
// holds no slot. The caller must give the slot back with Release.
func (s *Slots) Acquire(ctx context.Context, name string) error { return s.acquire(ctx, name, false) }

// AcquireAhead is Acquire for what cannot wait: work that is half done and gave its slot back while it waited, or that is due. It goes
// ahead of the tenant's other requests, of which every fourth keeps its turn. Other tenants do not notice it.
func (s *Slots) AcquireAhead(ctx context.Context, name string) error {
	return s.acquire(ctx, name, true)
}

func (s *Slots) acquire(ctx context.Context, name string, ahead bool) error {
	s.mu.Lock()
	s.comes(name)
	t := s.tenants[name]
	if t == nil {
		t = &tenant{name: name}
		s.tenants[name] = t
	}
	if t.waits() > 0 {
		s.grant() // the tenant may have a larger share by now than when its requests began to wait
	}
	if t.waits() == 0 && s.may(t) {
		s.take(t)
		s.mu.Unlock()
		return nil
	}
	granted := make(chan struct{})
	if t.waits() == 0 {
		s.ring = append(s.ring, t)
	}
	if ahead {
		t.ahead = append(t.ahead, granted)
	} else {
		t.waiting = append(t.waiting, granted)
	}
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
		panic("fair: Release without a held slot")
	}
	s.giveBack(name, t)
}

// may reports whether the tenant may take a slot now. The share grows with time only when the other tenants' presence ends; a
// waiting request then gets its slot with the tenant's next Acquire or Release.
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

// grant gives slots to the waiting tenants that may have one, in turns; a tenant that may not lets the next one go first.
// Afterwards none of the waiting tenants may have one. While a slot is free, there are fewer waiting tenants than slots.
func (s *Slots) grant() {
	for refused := 0; s.free > 0 && refused < len(s.ring); {
		t := s.ring[0]
		s.ring = s.ring[1:]
		if s.may(t) {
			s.take(t)
			close(t.next())
		} else {
			refused++
		}
		if t.waits() > 0 {
			s.ring = append(s.ring, t)
		}
	}
}

// cancel removes a request that no longer waits. Its slot may have been granted at the same moment.
func (s *Slots) cancel(name string, t *tenant, granted chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(t.waiting, granted); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else if i := slices.Index(t.ahead, granted); i >= 0 {
		t.ahead = slices.Delete(t.ahead, i, i+1)
	} else {
		s.giveBack(name, t)
		return
	}
	if t.waits() == 0 {
		s.ring = slices.DeleteFunc(s.ring, func(other *tenant) bool { return other == t })
	}
	s.forget(name, t)
}

// forget drops a tenant that holds nothing and waits for nothing.
func (s *Slots) forget(name string, t *tenant) {
	if t.held == 0 && t.waits() == 0 {
		delete(s.tenants, name)
	}
}
