package watch

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// memoryAlarm remembers the last call about each ScheduledJob.
type memoryAlarm struct {
	mu     sync.Mutex
	resets int
	known  map[types.UID]events.ScheduledJob
}

func (a *memoryAlarm) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resets, a.known = a.resets+1, map[types.UID]events.ScheduledJob{}
}

func (a *memoryAlarm) Saw(j events.ScheduledJob) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[j.UID] = j
}

func (a *memoryAlarm) Gone(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, uid)
}

func (a *memoryAlarm) of(uid types.UID) (events.ScheduledJob, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	j, ok := a.known[uid]
	return j, ok
}

// quiet is a status that requires no work.
func quiet(j *v1alpha1.ScheduledJob) func(*v1alpha1.ScheduledJobStatus) {
	return func(s *v1alpha1.ScheduledJobStatus) {
		until, next := metav1.NewTime(clustertest.Noon), metav1.NewTime(time.Now().Add(time.Hour))
		s.ObservedGeneration, s.DecidedUntil, s.NextScheduleTime = j.Generation, &until, &next
	}
}

func TestWatcherWatchesScheduledJobs(t *testing.T) {
	w := newWorld(t)
	alarm := &memoryAlarm{}
	before, _ := w.CreateSchedule("before")
	x := watchSchedules(t, &memorySink{}, func(c *Config) { c.Alarm = alarm })
	clustertest.Eventually(t, func() string { // the watcher is ready a moment before
		alarm.mu.Lock()
		defer alarm.mu.Unlock()
		if _, ok := alarm.known[before.UID]; !ok || alarm.resets != 1 {
			return fmt.Sprintf("the alarm to be wound up with the list: %d resets", alarm.resets)
		}
		return ""
	})

	sj, key := w.CreateSchedule("nightly")
	j := w.MakeRun(sj, clustertest.Noon)
	jobKey := events.Key{Function: "job", Namespace: w.NS, UID: j.UID}
	j = w.StartJob(j)
	j.Status.Active = 1 // the progress of a running Job
	if _, err := w.BatchV1().Jobs(w.NS).UpdateStatus(t.Context(), j, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	j = w.LiveJob(j.Name)
	j.Status.Active = 0
	w.Finish(j)
	w.DeleteJob(j.Name)
	w.SettleSchedule("nightly", quiet(sj))
	w.DeleteSchedule("nightly")

	clustertest.Eventually(t, func() string {
		if len(of[events.ScheduledJobGone](x.sink, key)) == 0 || len(of[events.RunGone](x.sink, key)) == 0 {
			return "the end of both; log:\n" + x.log.String()
		}
		return ""
	})
	var results []string
	for _, e := range of[events.RunObserved](x.sink, key) {
		results = append(results, e.Run.Name+" "+string(e.Run.Result))
	}
	if want := []string{j.Name + " ", j.Name + " Complete"}; !slices.Equal(results, want) {
		t.Errorf("observations of the Job %q, want %q", results, want)
	}
	if gone := of[events.RunGone](x.sink, key)[0].Run; gone.UID != j.UID || gone.Result != events.RunComplete || !gone.Nominal.Equal(clustertest.Noon) || gone.Version <= events.Version(j.ResourceVersion) {
		t.Errorf("%+v", gone)
	}
	if n := len(of[events.JobObserved](x.sink, jobKey)); n != 4 {
		t.Errorf("%d observations of the Job for itself", n)
	}
	observations := of[events.ScheduledJobObserved](x.sink, key)
	if len(observations) < 2 || observations[0].ScheduledJob.Status.DecidedUntil != nil || observations[1].ScheduledJob.Status.DecidedUntil == nil {
		t.Errorf("observations of the ScheduledJob %+v", observations)
	}
	if gone := of[events.ScheduledJobGone](x.sink, key)[0]; gone.Name != "nightly" || gone.Version <= events.Version(sj.ResourceVersion) {
		t.Errorf("%+v", gone)
	}
	if _, ok := alarm.of(sj.UID); ok {
		t.Error("the alarm was not told that it is gone")
	}

	t.Run("also where another controller runs its Jobs", func(t *testing.T) {
		sj, key := w.CreateSchedule("theirs", func(j *v1alpha1.ScheduledJob) {
			j.Spec.JobTemplate.Spec.ManagedBy = new("example.com/other")
		})
		j := w.MakeRun(sj, clustertest.Noon)
		clustertest.Eventually(t, func() string {
			if len(of[events.RunObserved](x.sink, key)) == 0 {
				return "an observation of the Job"
			}
			return ""
		})
		if facts := x.sink.about(events.Key{Function: "job", Namespace: w.NS, UID: j.UID}); len(facts) != 0 {
			t.Errorf("%+v", facts)
		}
	})
}

// TestWatcherListsScheduledJobs: exactly those with work to do get a snapshot.
func TestWatcherListsScheduledJobs(t *testing.T) {
	w := newWorld(t)
	fresh, freshKey := w.CreateSchedule("fresh")
	made := w.MakeRun(fresh, clustertest.Noon)
	rests, restsKey := w.CreateSchedule("rests")
	w.SettleSchedule("rests", quiet(rests))
	w.Finish(w.StartJob(w.MakeRun(rests, clustertest.Noon))) // counted, and kept
	x := watchSchedules(t, &memorySink{})
	r := of[events.ScheduleListed](x.sink, freshKey)
	if len(r) != 1 || r[0].Name != "fresh" || r[0].ScheduledJob.UID != fresh.UID || len(r[0].Runs) != 1 || r[0].Runs[0].UID != made.UID ||
		r[0].SchedulesVersion < events.Version(fresh.ResourceVersion) || r[0].Version < events.Version(made.ResourceVersion) || !strings.HasPrefix(r[0].ID, "relist/") {
		t.Errorf("%+v", r)
	}
	if facts := x.sink.about(restsKey); len(facts) != 0 {
		t.Errorf("one that rests was told %+v", facts)
	}
	t.Run("again when asked, under another ID", func(t *testing.T) {
		x.Relist()
		clustertest.Eventually(t, func() string {
			again := of[events.ScheduleListed](x.sink, freshKey)
			if len(again) < 2 {
				return "another snapshot"
			}
			if again[1].ID == r[0].ID {
				t.Errorf("the ID %q came twice", r[0].ID)
			}
			return ""
		})
	})
}
