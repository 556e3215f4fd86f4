package sim

import (
	"errors"
	"fmt"
)

// The length of a life, in steps.
const (
	roughSteps = 1200
	calmSteps  = 6000
	quietSteps = 60 // and as many for each Job
)

// rest runs the world until nothing moves.
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

// reach runs the world to rest and then requires order. Very rarely a missed fact needs the relist that the trigger does every
// ten minutes: if a worker loses its facts to another one and dies between commit and act, no worker repeats its effects. The
// run counts these worlds.
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

// HealedByRelist is the name under which steps counts the worlds that needed another relist to come in order.
const HealedByRelist = "healed by relist"

// Live runs the world through rough weather; then through calm, first with the nodes frozen to check that the Pods are those
// that the Job asks for, then until everything has settled; then a little longer to check that it stays settled. It returns the
// first law that was broken, and adds what happened to steps.
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
	forgotten := w.forgotten()
	w.Calm()
	if !w.ticking() || w.rand.IntN(2) == 0 {
		if err := w.freeze(); err != nil {
			return err
		}
	}
	if err := w.reach(w.Settled); err != nil {
		return err
	}
	if err := w.quiet(forgotten); err != nil {
		return err
	}
	if err := w.Settled(); err != nil || w.scheduler == nil {
		return err
	}
	return w.scheduler.resumed()
}

// quiet checks that a world at rest stays at rest, whatever is listed. If a version meets a state of another version for the first time, it
// forgets the state, takes inventory once more, perhaps not before something is listed, and may find something to do. forgotten is how
// often that had happened when the calm began.
func (w *World) quiet(forgotten int) error {
	w.frozen = true
	for ; ; forgotten = w.forgotten() {
		before := w.writes()
		w.relist()
		for i := 0; w.Step() && i < quietSteps*(1+len(w.tenants)); i++ {
			if err := w.Check(); err != nil {
				return err
			}
		}
		now := w.writes()
		if now == before {
			return nil
		}
		if w.forgotten() == forgotten {
			return fmt.Errorf("came to rest and moved again: version %d, then %d", before, now)
		}
	}
}

// forgotten returns how often a version has met a state of another.
func (w *World) forgotten() int { return w.Steps["upgraded"] + w.Steps["rolled back"] }

// freeze stops the nodes, removes a few finalizers, and checks that the Pods come in order.
func (w *World) freeze() error {
	w.frozen = true
	for _, t := range w.tenants {
		t.stripSome()
	}
	if err := w.reach(w.Steady); err != nil {
		return err
	}
	w.frozen = false
	return nil
}

// writes returns the number of changes in the cluster so far.
func (w *World) writes() (n uint64) {
	for _, t := range w.tenants {
		n += t.api.version
	}
	return n
}

// each checks a law for every Job.
func (w *World) each(law func(*tenant) error) error {
	for _, t := range w.tenants {
		if err := law(t); err != nil && len(w.tenants) > 1 {
			return fmt.Errorf("[%s] %w", t.api.Namespace, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Check checks what must hold at every step.
func (w *World) Check() error {
	if w.fleet.broken != nil {
		return w.fleet.broken
	}
	if w.scheduler != nil && w.scheduler.truth.Err() != nil {
		return w.scheduler.truth.Err()
	}
	return w.each((*tenant).check)
}

// Steady checks what must hold when nothing is left to do and the nodes are frozen.
func (w *World) Steady() error {
	if err := w.served(); err != nil {
		return err
	}
	return w.each((*tenant).steady)
}

// Settled checks what must hold at the end of the world.
func (w *World) Settled() error {
	if err := w.served(); err != nil {
		return err
	}
	if w.scheduler != nil {
		if err := w.scheduler.settled(); err != nil {
			return err
		}
	}
	return w.each((*tenant).settled)
}

// served checks a world at rest: the partitions are distributed and no fact is undelivered.
func (w *World) served() error {
	if err := w.fleet.distributed(); err != nil {
		return err
	}
	for _, m := range w.bus.facts {
		return fmt.Errorf("no reconciler takes %v of %s, in partition %d", m.event, m.key, m.partition)
	}
	return nil
}

// stripSome removes a few finalizers.
func (w *tenant) stripSome() {
	for _, name := range w.api.podNames() {
		if p := w.api.pods[name]; w.rand.IntN(4) == 0 {
			w.trace("user     removes the finalizer from %s", name)
			w.lose(p)
		}
	}
}

// ticking reports whether the time of some Job runs out while the nodes are frozen.
func (w *World) ticking() bool {
	for _, t := range w.tenants {
		if t.plan.job.ActiveDeadlineSeconds != nil || t.plan.job.Options.PendingDeadlineSeconds != nil {
			return true
		}
	}
	return false
}
