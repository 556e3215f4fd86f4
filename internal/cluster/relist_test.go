package cluster

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

func TestWatcherLists(t *testing.T) {
	w := newWorld(t)
	fresh, freshKey := w.createJob("fresh")

	busy, busyKey := w.createJob("busy")
	busy = w.startJob(busy)
	running := w.createPod(busy, busyKey, 0)
	counted := w.createPod(busy, busyKey, 1)
	w.endPod(counted.Name, corev1.PodSucceeded)
	w.act(busyKey, effect.RemoveFinalizer{Name: counted.Name, UID: counted.UID})

	done, doneKey := w.finishedJob("done", false)
	left, leftKey := w.finishedJob("left", true)

	gone, goneKey := w.createJob("gone")
	orphan := w.createPod(w.startJob(gone), goneKey, 0)
	loose := w.createPod(gone, goneKey, 1)
	w.act(goneKey, effect.RemoveFinalizer{Name: loose.Name, UID: loose.UID})
	w.deleteJob("gone")
	vanished, vanishedKey := w.createJob("vanished") // whose only Pod nobody has to release
	free := w.createPod(w.startJob(vanished), vanishedKey, 0)
	w.act(vanishedKey, effect.RemoveFinalizer{Name: free.Name, UID: free.UID})
	w.deleteJob("vanished")

	foreign, foreignKey := w.createJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	pod := job.BuildPod(foreign, createEffect(foreign, 0), nil) // it even carries our label
	if _, err := w.CoreV1().Pods(w.ns).Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	client, seen := testClient(t)
	x := startWatcher(t, &memorySink{}, client, seen)
	for _, c := range []struct {
		name string
		key  events.Key
		job  *batchv1.Job // nil: absent
		pods []string
	}{
		{"fresh", freshKey, fresh, nil},
		{"busy", busyKey, busy, []string{running.Name}},
		{"done", doneKey, done, nil}, // within the hour: it may have to be announced
		{"left", leftKey, left, []string{createEffect(left, 0).Name}},
		{"gone", goneKey, nil, []string{orphan.Name, loose.Name}},
	} {
		snapshots := of[events.JobListed](x.sink, c.key)
		if len(snapshots) != 1 {
			t.Errorf("%s: snapshots %+v", c.name, snapshots)
			continue
		}
		r := snapshots[0]
		names := map[string]bool{}
		for _, p := range r.Pods {
			names[p.Name] = true
		}
		ok := r.Name == c.name && len(names) == len(c.pods) && r.JobsVersion != 0 && r.Version != 0 && strings.HasPrefix(r.ID, "relist/")
		for _, p := range c.pods {
			ok = ok && names[p]
		}
		if ok = ok && (r.Job == nil) == (c.job == nil); !ok || c.job != nil && r.Job.UID != c.job.UID {
			t.Errorf("%s: snapshot %+v", c.name, r)
		}
	}
	for name, key := range map[string]events.Key{"vanished": vanishedKey, "foreign": foreignKey} {
		if facts := x.sink.about(key); len(facts) != 0 {
			t.Errorf("%s: %+v", name, facts)
		}
	}

	t.Run("again when asked, under another ID", func(t *testing.T) {
		first := of[events.JobListed](x.sink, busyKey)[0]
		x.Relist()
		eventually(t, func() string {
			snapshots := of[events.JobListed](x.sink, busyKey)
			if len(snapshots) < 2 {
				return "another snapshot"
			}
			if snapshots[1].ID == first.ID {
				t.Fatalf("the ID %q came twice", first.ID)
			}
			return ""
		})
	})
}

// A finished Job that nobody has to do anything about costs a snapshot where it may have to be announced: when the Watcher begins
// or the bus may have lost memories, for an hour; else at the first lists after its end.
func TestFinishedJobsThatMayHaveToBeAnnounced(t *testing.T) {
	w := newWorld(t)
	_, key := w.finishedJob("finished", false)
	client, _ := testClient(t)
	now := time.Now()
	sink := &memorySink{}
	x, err := NewWatcher(WatcherConfig{Client: client, Cluster: "test", Sink: sink, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		later time.Duration
		lost  bool
		want  int
	}{
		{"the first list", 0, false, 1},
		{"the next, a moment later: clocks differ", time.Second, false, 1},
		{"ten minutes later, for the same reason", 10 * time.Minute, false, 1},
		{"the next", 10 * time.Minute, false, 0},
		{"the bus may have lost the memory of it", 0, true, 1},
		{"the next", 10 * time.Minute, false, 0},
		{"the bus may have lost it, more than an hour after the end", 40 * time.Minute, true, 0},
	} {
		now = now.Add(tt.later)
		before := len(of[events.JobListed](sink, key))
		x.lost = tt.lost
		if _, err := x.relist(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(of[events.JobListed](sink, key)) - before; got != tt.want {
			t.Errorf("%s: %d snapshots, want %d", tt.name, got, tt.want)
		}
	}
}

// finishedJob makes a Job that is Complete, with or without a Pod that is still held.
func (w *world) finishedJob(name string, holds bool) (*batchv1.Job, events.Key) {
	w.Helper()
	j, key := w.createJob(name)
	j = w.startJob(j)
	if holds {
		e := createEffect(j, 0)
		only[events.PodObserved](w, w.act(key, e))
		w.endPod(e.Name, corev1.PodSucceeded)
	}
	return w.finish(j), key
}
