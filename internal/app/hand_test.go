package app

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/internal/engine"
)

type nothing struct{ engine.Delivery }

func (nothing) Ack()              {}
func (nothing) Nak(time.Duration) {}
func (nothing) Quarantine(error)  {}

func TestHandIsEmptyWhenAllIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHand()
		if left := h.empty(time.Hour); left != 0 {
			t.Errorf("a new hand holds %d", left)
		}
		a, b, c := h.take(nothing{}), h.take(nothing{}), h.take(nothing{})
		go func() {
			a.Ack()
			a.Ack() // an answer that is repeated counts once
			b.Nak(time.Second)
			<-time.After(time.Minute)
			c.Quarantine(errors.New("poison"))
		}()
		if left := h.empty(time.Second); left != 1 {
			t.Errorf("%d are left after a second, want 1", left)
		}
		if left := h.empty(time.Hour); left != 0 {
			t.Errorf("%d are left in the end", left)
		}
		h.take(nothing{})
		if left := h.empty(time.Second); left != 1 {
			t.Errorf("a hand that was empty once holds %d, want 1", left)
		}
	})
}
