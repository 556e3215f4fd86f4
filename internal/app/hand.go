package app

import (
	"sync"
	"time"

	"github.com/jobstream/jobstream/internal/engine"
)

// hand counts the deliveries that a reconciler has taken and not yet given an answer to, so that it can end when it holds
// none.
type hand struct {
	mu    sync.Mutex
	holds int
	none  chan struct{} // closed while it holds none
}

func newHand() *hand {
	h := &hand{none: make(chan struct{})}
	close(h.none)
	return h
}

// take counts the delivery until it is answered.
func (h *hand) take(d engine.Delivery) engine.Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds == 0 {
		h.none = make(chan struct{})
	}
	h.holds++
	return &held{Delivery: d, hand: h}
}

func (h *hand) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds--; h.holds == 0 {
		close(h.none)
	}
}

func (h *hand) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holds
}

// empty waits until nothing is held, at most for the given time, and returns how much is.
func (h *hand) empty(atMost time.Duration) int {
	h.mu.Lock()
	none := h.none
	h.mu.Unlock()
	select {
	case <-none:
	case <-time.After(atMost):
	}
	return h.count()
}

// held is a delivery in the hand. Every one is answered once; the first answer counts.
type held struct {
	engine.Delivery
	hand *hand
	once sync.Once
}

// Ack implements engine.Delivery.
func (d *held) Ack() {
	d.Delivery.Ack()
	d.once.Do(d.hand.release)
}

// Nak implements engine.Delivery.
func (d *held) Nak(after time.Duration) {
	d.Delivery.Nak(after)
	d.once.Do(d.hand.release)
}

// Quarantine implements engine.Delivery.
func (d *held) Quarantine(reason error) {
	d.Delivery.Quarantine(reason)
	d.once.Do(d.hand.release)
}
