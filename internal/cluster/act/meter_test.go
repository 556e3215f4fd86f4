package act

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// tally is a Meter that records its calls.
type tally struct {
	mu       sync.Mutex
	recorded []string
}

func (m *tally) record(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recorded = append(m.recorded, fmt.Sprintf(format, args...))
}

func (m *tally) StatusWritten(before, after *batchv1.Job, handled map[batchv1.PodFailurePolicyAction]int) {
	m.record("status of %s: %d active, then %d, handled %v", after.Name, before.Status.Active, after.Status.Active, handled)
}
func (m *tally) PodCreation(j *batchv1.Job, err error) {
	m.record("creation for %s: %s", j.Name, apierrors.ReasonForError(err))
}
func (m *tally) FinalizerRemoved() { m.record("finalizer removed") }

func (m *tally) VerdictUnannounced(v events.TickDecided) { m.record("unannounced %v", v) }

func TestMeter(t *testing.T) {
	m := &tally{}
	w := newWorld(t, func(c *Config) { c.Meter = m })
	recorded := func(t *testing.T, want ...string) {
		t.Helper()
		m.mu.Lock()
		defer m.mu.Unlock()
		if !slices.Equal(m.recorded, want) {
			t.Errorf("recorded %q\nwant     %q", m.recorded, want)
		}
		m.recorded = nil
	}
	j, key := w.CreateJob("pi", wide) // so wide that its field ownership is reset before the first write

	t.Run("of a status that was written", func(t *testing.T) {
		w.act(key, statusEffect(j, func(e *effect.WriteJobStatus) {
			start(e)
			e.Handled = map[batchv1.PodFailurePolicyAction]int{batchv1.PodFailurePolicyActionIgnore: 2}
		}))
		recorded(t, "status of pi: 0 active, then 2, handled map[Ignore:2]")
		w.act(key, statusEffect(w.LiveJob("pi"), func(e *effect.WriteJobStatus) { e.Status.Active = 3 }))
		recorded(t, "status of pi: 2 active, then 3, handled map[]")
	})
	t.Run("not of one that was not", func(t *testing.T) {
		w.act(key, statusEffect(j, start))
		w.act(key, statusEffect(w.LiveJob("pi"), func(e *effect.WriteJobStatus) { e.Status.Active = -1 }))
		recorded(t)
	})
	t.Run("of each attempt to make a Pod", func(t *testing.T) {
		w.createPod(j, key, 0)
		w.createPod(j, key, 0)
		recorded(t, "creation for pi: ", "creation for pi: AlreadyExists")
	})
	t.Run("of each finalizer that was removed", func(t *testing.T) {
		p, q, r := w.createPod(j, key, 1), w.createPod(j, key, 2), w.createPod(j, key, 3)
		m.recorded = nil
		w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
		w.act(key, effect.DeletePod{Name: q.Name, UID: q.UID, Version: q.Version, RemoveFinalizer: true})
		w.act(key, effect.ReleasePod{Name: r.Name, UID: r.UID})
		recorded(t, "finalizer removed", "finalizer removed", "finalizer removed")
		w.act(key, effect.RemoveFinalizer{Name: "absent", UID: p.UID})
		w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})
		recorded(t)
	})
	t.Run("of each verdict that a status forgets unannounced, once", func(t *testing.T) {
		sj, key := w.CreateSchedule("unannounced")
		e := scheduleStatusEffect(sj)
		e.Unannounced = []events.TickDecided{{Verdict: events.Started, Nominal: clustertest.Noon}}
		w.act(key, e)
		recorded(t, "unannounced "+e.Unannounced[0].String())
		w.act(key, e) // at a version that has passed
		recorded(t)
	})
}
