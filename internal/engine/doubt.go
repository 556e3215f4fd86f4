package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// errInVain is why effects rest that have been done, and are wanted again just as they were.
var errInVain = errors.New("the answers to all effects changed nothing: what is remembered is not what the cluster says, or somebody undoes what is done")

// doubtAfter is after how many turns in vain without progress, and then after how many more, what is remembered is forgotten: after two minutes,
// and then every eight. That costs an inventory.
const doubtAfter = 8

// doubt forgets a memory that does not come to agree with the cluster, however often it is told what is: one that somebody has forged,
// or that is older than a backup from which the cluster was restored, is ahead of everything that the cluster will say for a long time.
func (r *Runner) doubt(key events.Key) {
	r.mu.Lock()
	k := r.state(key)
	k.inVain++
	due := k.inVain%doubtAfter == 0
	r.mu.Unlock()
	if !due {
		return
	}
	r.cfg.Log.Error("what is remembered does not agree with the cluster, whatever is done: forgotten; inventory follows", "function", r.cfg.Function.Name, "key", key.String())
	if err := r.cfg.Store.Forget(r.ctx, key); err != nil {
		r.cfg.Log.Error("memory not forgotten", "key", key.String(), "error", err)
	}
}

// tell does what the decision has for the bus while its effects on the cluster rest, and what follows from that.
func (r *Runner) tell(t *Turn, until time.Time) error {
	for {
		r.act(t, slices.DeleteFunc(slices.Clone(t.Effects()), func(e effect.Effect) bool { return !ofBus(e) }))
		if !t.Again() {
			return nil
		}
		if err := r.commit(t); err != nil || !time.Now().Before(until) {
			return err
		}
	}
}
