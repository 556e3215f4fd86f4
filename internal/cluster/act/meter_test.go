package act

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
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

func (m *tally) JobCreated(_ string, nominal, at time.Time) {
	m.record("created for %s, %v late", nominal.Format(time.TimeOnly), at.Sub(nominal))
}

func (m *tally) ScheduleStatusWritten(before, after *v1alpha1.ScheduledJob, dropped []events.TickDecided) {
	m.record("status of %s: %d verdicts, then %d, unannounced %v", after.Name, len(before.Status.Recent), len(after.Status.Recent), dropped)
}

func TestMeter(t *testing.T) {
	m := &tally{}
	w := newWorld(t, func(c *Config) {
		c.Meter, c.Now = m, func() time.Time { return clustertest.Noon.Add(1500 * time.Millisecond) }
	})
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
	t.Run("of each status of a ScheduledJob that was written, once", func(t *testing.T) {
		sj, key := w.CreateSchedule("hourly")
		e := scheduleStatusEffect(sj)
		e.Status.Recent = []v1alpha1.TickVerdict{{Verdict: string(events.Skipped), Time: metav1.NewTime(clustertest.Noon), Count: 1}}
		e.Unannounced = []events.TickDecided{{Verdict: events.Started, Nominal: clustertest.Noon}}
		w.act(key, e)
		recorded(t, "status of hourly: 0 verdicts, then 1, unannounced "+fmt.Sprint(e.Unannounced))
		w.act(key, e) // at a version that has passed
		recorded(t)
	})
	t.Run("of each Job that was created for a nominal time, once", func(t *testing.T) {
		_, key := w.CreateSchedule("daily")
		create := effect.CreateJob{ScheduledJob: "daily", Name: "daily-" + events.NominalHash(clustertest.Noon), Nominal: clustertest.Noon}
		w.act(key, create)
		recorded(t, "created for 12:00:00, 1.5s late")
		w.act(key, create) // after an answer that was lost
		recorded(t)
	})
}
