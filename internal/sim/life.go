package sim

import (
	"errors"
	"fmt"
)

// The length of a life, in steps.
const (
	roughSteps = 1200
	calmSteps  = 6000
	quietSteps = 60
)

// rest lets the world go on until nothing moves any more.
func (w *World) rest() error {
	for i := 0; w.Step(); i++ {
		if err := w.Check(); err != nil {
			return err
		}
		if i == calmSteps {
			return errors.New("never comes to rest")
		}
	}
	return nil
}

// reach lets the world rest and wants it in order then. What was missed may, very rarely, need the relist that the trigger
// does every ten minutes: a worker that lost its facts to another one and dies between commit and act leaves nobody to
// repeat its effects. The run counts these worlds.
func (w *World) reach(order func() error) error {
	if err := w.rest(); err != nil {
		return err
	}
	if order() == nil {
		return nil
	}
	w.happens(HealedByRelist, "trigger  relists: %v", order())
	w.relist()
	if err := w.rest(); err != nil {
		return err
	}
	return order()
}

// HealedByRelist names the step that counts worlds which came in order only after another relist.
const HealedByRelist = "healed by relist"

// Live lives through the world: rough weather; then calm, first with the nodes frozen to see that the fleet is what the
// Job asks for, then until everything has settled; then a little longer to see that it stays so. It returns the first law that is broken, and adds to steps what happened.
func Live(w *World, steps map[string]int) error {
	defer func() {
		for k, n := range w.Steps {
			if steps != nil {
				steps[k] += n
			}
		}
	}()
	for range roughSteps {
		moved := w.Step()
		if err := w.Check(); err != nil {
			return err
		}
		if !moved {
			break
		}
	}
	w.Calm()
	if !w.ticking() || w.rand.IntN(2) == 0 {
		if err := w.freeze(); err != nil {
			return err
		}
	}
	if err := w.reach(w.Settled); err != nil {
		return err
	}
	before := w.api.version
	w.frozen = true
	w.relist()
	for i := 0; w.Step() && i < quietSteps; i++ {
		if err := w.Check(); err != nil {
			return err
		}
	}
	if w.api.version != before {
		return fmt.Errorf("came to rest and moved again: version %d, then %d", before, w.api.version)
	}
	return w.Settled()
}

// freeze stops the nodes, takes a few finalizers off, and sees that the fleet comes in order.
func (w *World) freeze() error {
	w.frozen = true
	for _, name := range w.api.podNames() {
		if p := w.api.pods[name]; w.rand.IntN(4) == 0 {
			w.trace("user     takes the finalizer off %s", name)
			w.lose(p)
		}
	}
	if err := w.reach(w.Steady); err != nil {
		return err
	}
	w.frozen = false
	return nil
}

// ticking says that the Job does not wait: while the nodes do nothing, its time runs out.
func (w *World) ticking() bool {
	return w.plan.job.ActiveDeadlineSeconds != nil || w.plan.job.Wishes.PendingDeadlineSeconds != nil
}
