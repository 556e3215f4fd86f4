package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// errInVain is why effects back off that were done and answered, and are wanted again unchanged.
var errInVain = errors.New("the answers to all effects changed nothing: the state disagrees with the cluster, or another controller undoes the effects")

// doubtAfter is the number of turns in vain without progress after which the state is deleted, and deleted again: after two
// minutes, and then every eight. Each time costs an inventory.
const doubtAfter = 8

// doubt deletes a state that does not converge with the cluster, however often it is told the facts. A state that was forged, or
// that is newer than the backup from which the cluster was restored, stays ahead of everything that the cluster will report for a
// long time.
func (r *Runner) doubt(key events.Key) {
	r.mu.Lock()
	k := r.state(key)
	k.inVain++
	due := k.inVain%doubtAfter == 0
	r.mu.Unlock()
	if !due {
		return
	}
	r.cfg.Log.Error("the state does not converge with the cluster: forgotten; inventory follows", "function", r.cfg.Function.Name, "key", key.String())
	if err := r.cfg.Store.Forget(r.ctx, key); err != nil {
		r.cfg.Log.Error("the state cannot be deleted", "key", key.String(), "error", err)
	}
}

// tell does the decision's effects on the bus while its effects on the cluster back off, and commits what follows from them.
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
