package watch

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/act"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// sees waits until a Pod was published for the key, and returns the newest observation of it.
func (x *watching) sees(t *testing.T, key events.Key, p *corev1.Pod) (newest events.Pod) {
	t.Helper()
	clustertest.Eventually(t, func() string {
		for _, o := range of[events.PodObserved](x.sink, key) {
			if o.Pod.UID == p.UID && o.Pod.Version >= events.Version(p.ResourceVersion) {
				newest = o.Pod
				return ""
			}
		}
		return "an observation of the Pod " + p.Name + "; log:\n" + x.log.String()
	})
	return newest
}

// misses waits until the key got the fact that a Pod is gone.
func (x *watching) misses(t *testing.T, key events.Key, p *corev1.Pod) {
	t.Helper()
	clustertest.Eventually(t, func() string {
		for _, o := range of[events.PodGone](x.sink, key) {
			if o.Pod.UID == p.UID {
				return ""
			}
		}
		return "the end of the Pod " + p.Name
	})
}

// never asserts that no fact about a Pod was published for the key.
func (x *watching) never(t *testing.T, key events.Key, p *corev1.Pod) {
	t.Helper()
	for _, e := range x.sink.about(key) {
		switch e := e.(type) {
		case events.PodObserved:
			if e.Pod.UID == p.UID {
				t.Errorf("was told of %s", p.Name)
			}
		case events.PodGone:
			if e.Pod.UID == p.UID {
				t.Errorf("was told of the end of %s", p.Name)
			}
		}
	}
}

// once asserts that no two watches have published the same.
func (x *watching) once(t *testing.T) {
	t.Helper()
	x.sink.set(func() {
		seen := map[string]bool{}
		for _, f := range x.sink.facts {
			if _, ok := f.Event.(events.PodObserved); ok && seen[f.ID()] {
				t.Errorf("%s was told twice", f.ID())
			}
			seen[f.ID()] = true
		}
	})
}

// watches reports whether the unmarked Pods of the namespace are watched.
func (x *watching) watches(namespace string) bool {
	x.unlabelled.mu.Lock()
	defer x.unlabelled.mu.Unlock()
	return x.unlabelled.watches[namespace] != nil
}

func TestWatcherShowsOrphansToJobsThatMayAdoptThem(t *testing.T) {
	w := newWorld(t)
	client, seen := clustertest.Client(t)
	before := w.ForeignPod("before", map[string]string{"app": "pi"})
	x := startWatcher(t, &memorySink{}, client, seen)
	if x.watches(w.NS) {
		t.Error("the namespace is watched without an adopting Job")
	}
	a, keyA := w.CreateJob("a", clustertest.Picky("pi"))
	_, keyB := w.CreateJob("b", clustertest.Picky("pi"))
	_, keyC := w.CreateJob("c", clustertest.Picky("other"))
	_, generated := w.CreateJob("generated")
	foreign, foreignKey := w.CreateJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })

	t.Run("one that was there before the Job, and one that comes, to all that match", func(t *testing.T) {
		x.sees(t, keyA, before)
		later := w.ForeignPod("later", map[string]string{"app": "pi"})
		for _, key := range []events.Key{keyA, keyB} {
			if p := x.sees(t, key, later); !p.Orphan || p.Labels["app"] != "pi" {
				t.Errorf("saw %+v", p)
			}
		}
		for _, key := range []events.Key{keyC, generated} {
			x.never(t, key, before)
			x.never(t, key, later)
		}
	})
	t.Run("not the Pods of Jobs of others, nor their orphans", func(t *testing.T) {
		theirs := w.ForeignPod("theirs", map[string]string{"app": "pi", batchv1.ControllerUidLabel: string(foreign.UID)}, clustertest.OwnedBy(foreign))
		lost := w.ForeignPod("lost", map[string]string{"app": "nothing", batchv1.ControllerUidLabel: string(foreign.UID)})
		x.sees(t, keyA, w.ForeignPod("marker", map[string]string{"app": "pi"}))
		for _, p := range []*corev1.Pod{theirs, lost} {
			x.never(t, keyA, p)
			x.never(t, foreignKey, p)
		}
	})
	t.Run("one that is adopted is not gone", func(t *testing.T) {
		p := w.ForeignPod("adopted", map[string]string{"app": "pi"})
		x.sees(t, keyB, p)
		adopted := clustertest.Only[events.PodObserved](t, w.act(keyA, clustertest.AdoptEffect(a, p, 0))).Pod
		if got := x.sees(t, keyA, w.LivePod("adopted")); got.Serial != 0 || got.Orphan || got.Version != adopted.Version {
			t.Errorf("saw %+v", got)
		}
		x.misses(t, keyB, p) // but it concerns the other Job
		if gone := of[events.PodGone](x.sink, keyA); len(gone) != 0 {
			t.Errorf("gone is %+v", gone)
		}
	})
	t.Run("one that is deleted is", func(t *testing.T) {
		w.DeletePodNow("later")
		w.DeletePodNow("before")
		x.misses(t, keyA, before)
		x.misses(t, keyB, before)
	})
	t.Run("one that carries our mark, too", func(t *testing.T) {
		marked := w.ForeignPod("marked", map[string]string{"app": "pi", v1alpha1.ManagedLabel: "true"})
		x.sees(t, keyA, marked)
		x.sees(t, keyB, marked)
	})
	x.once(t)
	t.Run("until the last such Job is over", func(t *testing.T) {
		if !x.watches(w.NS) {
			t.Error("the namespace is not watched")
		}
		for _, name := range []string{"b", "c"} {
			w.DeleteJob(name)
		}
		w.Finish(w.StartJob(w.LiveJob("a")))
		clustertest.Eventually(t, func() string {
			if x.watches(w.NS) {
				return "no adopting Job"
			}
			return ""
		})
		_, again := w.CreateJob("again", clustertest.Picky("pi"))
		x.sees(t, again, w.LivePod("marker"))
		if len(of[events.JobListed](x.sink, keyA)) != 0 {
			t.Errorf("everything was listed again; log:\n%s", x.log.String())
		}
	})
}

// TestWatcherListsOrphans: the snapshot of a Job has all orphans that it may adopt, including finished ones.
func TestWatcherListsOrphans(t *testing.T) {
	w := newWorld(t)
	_, key := w.CreateJob("pi", clustertest.Picky("pi"))
	_, otherKey := w.CreateJob("other", clustertest.Picky("other"))
	orphan := w.ForeignPod("orphan", map[string]string{"app": "pi"})
	ended := w.ForeignPod("ended", map[string]string{"app": "pi"})
	w.EndPod("ended", corev1.PodSucceeded)
	client, seen := clustertest.Client(t)
	x := startWatcher(t, &memorySink{}, client, seen)
	r := of[events.JobListed](x.sink, key)[0]
	if len(r.Pods) != 2 || r.Pods[0].UID != ended.UID && r.Pods[1].UID != ended.UID || r.Pods[0].UID != orphan.UID && r.Pods[1].UID != orphan.UID {
		t.Errorf("Pods %+v", r.Pods)
	}
	if r := of[events.JobListed](x.sink, otherKey)[0]; len(r.Pods) != 0 {
		t.Errorf("Pods %+v", r.Pods)
	}
	t.Run("and the watch goes on from there", func(t *testing.T) {
		x.sees(t, key, w.ForeignPod("later", map[string]string{"app": "pi"}))
	})
}

// TestWatcherTakesOver: the Watcher lists Jobs that Kubernetes' own controller has begun.
func TestWatcherTakesOver(t *testing.T) {
	w := newWorld(t, func(c *act.Config) { c.Claim.Unmanaged = true })
	unmanaged := func(j *batchv1.Job) { j.Spec.ManagedBy = nil }
	made := func(j *batchv1.Job, name string) *corev1.Pod { // as the built-in controller creates them
		return w.ForeignPod(name, j.Spec.Template.Labels, clustertest.OwnedBy(j), func(p *corev1.Pod) { p.Finalizers = []string{batchv1.JobTrackingFinalizer} })
	}
	j, key := w.CreateJob("theirs", unmanaged)
	before := made(j, "before")
	client, seen := clustertest.Client(t)
	x := startWatcher(t, &memorySink{}, client, seen, func(c *Config) { c.Claim.Unmanaged = true })

	if r := of[events.JobListed](x.sink, key)[0]; len(r.Pods) != 1 || r.Pods[0].UID != before.UID || !r.Pods[0].Held || r.Pods[0].Serial != events.NoSerial {
		t.Errorf("Pods %+v", r.Pods)
	}
	_, picked := w.CreateJob("picky", unmanaged, clustertest.Picky("pi"))
	later := made(j, "later")
	if p := x.sees(t, key, later); p.Serial != events.NoSerial || p.Labels != nil || p.Owner != "theirs" {
		t.Errorf("saw %+v", p)
	}
	x.never(t, picked, later)

	t.Run("one that gets our mark is not gone", func(t *testing.T) {
		w.act(key, clustertest.AdoptEffect(j, before, 4))
		if p := x.sees(t, key, w.EndPod("before", corev1.PodRunning)); p.Serial != 4 {
			t.Errorf("saw %+v", p)
		}
		w.DeletePodNow("later") // a later fact of the same watch
		w.act(key, effect.RemoveFinalizer{Name: "later", UID: later.UID})
		x.misses(t, key, later)
		if gone := of[events.PodGone](x.sink, key); len(gone) != 1 {
			t.Errorf("gone are %+v", gone)
		}
	})
	t.Run("an orphan goes to all that may adopt it", func(t *testing.T) {
		labels := map[string]string{"app": "pi", batchv1.ControllerUidLabel: string(j.UID)}
		p := w.ForeignPod("both", labels)
		x.sees(t, key, p)
		x.sees(t, picked, p)
		x.sees(t, picked, w.ForeignPod("one", map[string]string{"app": "pi"}))
	})
	t.Run("one that loses its labels is shown to its owner", func(t *testing.T) {
		made(j, "bare")
		bare := w.EditPod("bare", func(p *corev1.Pod) { p.Labels = nil })
		if p := x.sees(t, key, bare); p.Labels == nil || p.Orphan {
			t.Errorf("saw %+v", p)
		}
	})
	x.once(t)
}
