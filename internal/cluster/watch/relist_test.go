package watch

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/pod"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestWatcherLists(t *testing.T) {
	w := newWorld(t)
	fresh, freshKey := w.CreateJob("fresh")

	busy, busyKey := w.CreateJob("busy")
	busy = w.StartJob(busy)
	running := w.createPod(busy, busyKey, 0)
	counted := w.createPod(busy, busyKey, 1)
	w.EndPod(counted.Name, corev1.PodSucceeded)
	w.act(busyKey, effect.RemoveFinalizer{Name: counted.Name, UID: counted.UID})

	done, doneKey := w.FinishedJob("done", false)
	left, leftKey := w.FinishedJob("left", true)

	gone, goneKey := w.CreateJob("gone")
	orphan := w.createPod(w.StartJob(gone), goneKey, 0)
	loose := w.createPod(gone, goneKey, 1)
	w.act(goneKey, effect.RemoveFinalizer{Name: loose.Name, UID: loose.UID})
	w.DeleteJob("gone")
	vanished, vanishedKey := w.CreateJob("vanished") // its only Pod is not held
	free := w.createPod(w.StartJob(vanished), vanishedKey, 0)
	w.act(vanishedKey, effect.RemoveFinalizer{Name: free.Name, UID: free.UID})
	w.DeleteJob("vanished")

	foreign, foreignKey := w.CreateJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	pod := pod.Build(foreign, clustertest.CreateEffect(foreign, 0), nil) // it even carries the managed label
	if _, err := w.CoreV1().Pods(w.NS).Create(w.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	client, seen := clustertest.Client(t)
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
		{"left", leftKey, left, []string{clustertest.CreateEffect(left, 0).Name}},
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
		clustertest.Eventually(t, func() string {
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

// A finished Job that needs no work costs a snapshot only if it may have to be announced: when the Watcher begins or the bus may
// have lost states, for an hour; otherwise at the first lists after its end.
func TestFinishedJobsThatMayHaveToBeAnnounced(t *testing.T) {
	w := newWorld(t)
	_, key := w.FinishedJob("finished", false)
	client, _ := clustertest.Client(t)
	now := time.Now()
	sink := &memorySink{}
	x, err := New(Config{Client: client, Cluster: "test", Sink: sink, Now: func() time.Time { return now }})
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

// TestFinishedJobsThatNeedATurn: most need none, and are not woken once no announcement can be missing any more.
func TestFinishedJobsThatNeedATurn(t *testing.T) {
	w := newWorld(t)
	finished := func(name string, change ...func(*batchv1.Job)) events.Key {
		j, key := w.CreateJob(name, change...)
		w.settledPods(w.StartJob(j), key)
		w.Finish(w.LiveJob(name))
		return key
	}
	ttl := func(seconds int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &seconds }
	}
	leaving := finished("leaving", clustertest.Limited("0"), func(j *batchv1.Job) { j.Spec.Template.Finalizers = []string{"example.com/logs"} })
	if err := w.CoreV1().Pods(w.NS).Delete(t.Context(), clustertest.CreateEffect(w.LiveJob("leaving"), 0).Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	keys := map[string]events.Key{"leaving": leaving,
		"plain": finished("plain"), "enough": finished("enough", clustertest.Limited("1")), "many": finished("many", clustertest.Limited("0")),
		"young": finished("young", ttl(0)), "forgotten": finished("forgotten", ttl(30)),
	}
	old := w.LiveJob("forgotten") // it finished long ago
	for i := range old.Status.Conditions {
		old.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * time.Minute))
	}
	if _, err := w.BatchV1().Jobs(w.NS).UpdateStatus(t.Context(), old, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, _ := clustertest.Client(t)
	sink := &memorySink{}
	x, err := New(Config{Client: client, Cluster: "test", Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	x.listed = time.Now().Add(time.Hour) // all of them have been reported since they finished
	if _, err := x.relist(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, key := range keys {
		want := name == "many" || name == "forgotten"
		if got := len(of[events.JobListed](sink, key)) == 1; got != want {
			t.Errorf("%s: told %v", name, got)
		}
	}
}
