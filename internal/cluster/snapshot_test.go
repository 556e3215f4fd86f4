package cluster

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

func names(r events.JobListed) (out []string) {
	for _, p := range r.Pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func (w *world) snapshot(key events.Key, name string) events.JobListed {
	w.Helper()
	return only[events.JobListed](w, w.act(key, effect.TakeInventory{ID: "i", Job: name}))
}

func limited(n string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Annotations = map[string]string{v1alpha1.FailedPodsLimitAnnotation: n} }
}

// settledPods makes a Pod that has failed and one that has succeeded, both counted.
func (w *world) settledPods(j *batchv1.Job, key events.Key) (failed, succeeded events.Pod) {
	w.Helper()
	for serial, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		p := w.createPod(j, key, serial)
		w.endPod(p.Name, phase)
		w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
	}
	return w.createdPod(j, 0), w.createdPod(j, 1)
}

func (w *world) createdPod(j *batchv1.Job, serial int) events.Pod {
	w.Helper()
	return events.ProjectPod(w.livePod(createEffect(j, serial).Name))
}

// TestSnapshotOfFailedPods: where the Job limits how many are kept, they are needed after they have been counted.
func TestSnapshotOfFailedPods(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("limited", limited("0"))
	failed, _ := w.settledPods(w.startJob(j), key)
	if got := names(w.snapshot(key, "limited")); !slices.Equal(got, []string{failed.Name}) {
		t.Errorf("Pods %v", got)
	}
	free, freeKey := w.createJob("free")
	w.settledPods(w.startJob(free), freeKey)
	if got := names(w.snapshot(freeKey, "free")); len(got) != 0 {
		t.Errorf("Pods %v", got)
	}
}

// TestFinishedJobsThatNeedATurn: most do not, and nobody is woken for them, once they may not have to be announced any more.
func TestFinishedJobsThatNeedATurn(t *testing.T) {
	w := newWorld(t)
	finished := func(name string, change ...func(*batchv1.Job)) events.Key {
		j, key := w.createJob(name, change...)
		w.settledPods(w.startJob(j), key)
		w.finish(w.liveJob(name))
		return key
	}
	ttl := func(seconds int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &seconds }
	}
	leaving := finished("leaving", limited("0"), func(j *batchv1.Job) { j.Spec.Template.Finalizers = []string{"example.com/logs"} })
	if err := w.CoreV1().Pods(w.ns).Delete(t.Context(), createEffect(w.liveJob("leaving"), 0).Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	keys := map[string]events.Key{"leaving": leaving,
		"plain": finished("plain"), "enough": finished("enough", limited("1")), "many": finished("many", limited("0")),
		"young": finished("young", ttl(0)), "forgotten": finished("forgotten", ttl(30)),
	}
	old := w.liveJob("forgotten") // and it has been finished for long
	for i := range old.Status.Conditions {
		old.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-2 * time.Minute))
	}
	if _, err := w.BatchV1().Jobs(w.ns).UpdateStatus(t.Context(), old, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, _ := testClient(t)
	sink := &memorySink{}
	x, err := NewWatcher(WatcherConfig{Client: client, Cluster: "test", Sink: sink})
	if err != nil {
		t.Fatal(err)
	}
	x.listed = time.Now().Add(time.Hour) // all of them have been told of since they finished
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

// TestSnapshotOfOrphans: those that the Job may adopt, whatever their phase, and of unmarked Pods nothing else.
func TestSnapshotOfOrphans(t *testing.T) {
	w := newWorld(t)
	pi := map[string]string{"app": "pi"}
	w.foreignPod("early", pi) // before there is a Job
	w.foreignPod("ended", pi)
	w.endPod("ended", corev1.PodSucceeded)
	w.foreignPod("another", map[string]string{"app": "another"})
	j, key := w.createJob("pi", picky("pi"))
	w.foreignPod("owned", pi, ownedBy(j))
	other, _ := w.createJob("other", picky("pi"))
	w.foreignPod("taken", pi, ownedBy(other))

	t.Run("of a Job that has never started, too", func(t *testing.T) {
		r := w.snapshot(key, "pi")
		if got := names(r); !slices.Equal(got, []string{"early", "ended", "owned"}) {
			t.Errorf("Pods %v", got)
		}
		for _, p := range r.Pods {
			if p.Orphan != (p.Name != "owned") || p.Labels["app"] != "pi" {
				t.Errorf("%+v", p)
			}
		}
	})
	t.Run("none for a Job that is over", func(t *testing.T) {
		w.finish(w.startJob(w.liveJob("pi")))
		if got := names(w.snapshot(key, "pi")); len(got) != 0 {
			t.Errorf("Pods %v", got)
		}
	})
	t.Run("by the generated label", func(t *testing.T) {
		j, key := w.createJob("generated")
		p := w.createPod(w.startJob(j), key, 0)
		w.editPod(p.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
		if r := w.snapshot(key, "generated"); len(r.Pods) != 1 || !r.Pods[0].Orphan || r.Pods[0].Labels != nil {
			t.Errorf("%+v", r.Pods)
		}
	})
}

// TestSnapshotOfAPodThatIsAdoptedMeanwhile: whatever happens between two lists, it is on the snapshot once, and as it is.
func TestSnapshotOfAPodThatIsAdoptedMeanwhile(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi", picky("pi"))
	adopted, ended := w.foreignPod("adopted", map[string]string{"app": "pi"}), w.foreignPod("ended", map[string]string{"app": "pi"})
	w.requests.inject(func(q *http.Request) (*http.Response, error) {
		if q.Method == http.MethodGet && q.URL.Path == w.podsPath() && q.URL.Query().Get("labelSelector") == marked { // the last list
			w.requests.inject(nil)
			w.act(key, adoptEffect(j, adopted, 0))
			p := only[events.PodObserved](t, w.act(key, adoptEffect(j, ended, 1))).Pod
			w.endPod("ended", corev1.PodSucceeded)
			w.act(key, effect.RemoveFinalizer{Name: "ended", UID: p.UID})
		}
		return nil, nil
	})
	r := w.snapshot(key, "pi")
	if len(r.Pods) != 1 || r.Pods[0].Name != "adopted" || r.Pods[0].Orphan || r.Pods[0].Serial != 0 {
		t.Errorf("Pods %+v", r.Pods)
	}
	if r.Version >= r.Pods[0].Version {
		t.Errorf("the snapshot of version %d claims to know more than its oldest list, the Pod is of %d", r.Version, r.Pods[0].Version)
	}
}

// TestInventoryOfATakeOver: the built-in controller makes Pods before it writes a status.
func TestInventoryOfATakeOver(t *testing.T) {
	nobodys := func(j *batchv1.Job) { j.Spec.ManagedBy = nil }
	unmanaged := func(made time.Time) func(*ActorConfig) {
		return func(c *ActorConfig) {
			c.Claim.Unmanaged = true
			c.Now = func() time.Time { return made }
		}
	}
	t.Run("a Job that may be older than we are is listed with the Pods that others made", func(t *testing.T) {
		w := newWorld(t, unmanaged(time.Now()))
		j, key := w.createJob("theirs", nobodys)
		w.foreignPod("made", j.Spec.Template.Labels, ownedBy(j))
		if r := w.snapshot(key, "theirs"); !slices.Equal(names(r), []string{"made"}) || r.Pods[0].Serial != events.NoSerial {
			t.Errorf("Pods %+v", r.Pods)
		}
	})
	t.Run("a younger one, or one that names us, costs one GET", func(t *testing.T) {
		w := newWorld(t, unmanaged(time.Now()))
		_, key := w.createJob("ours")
		w.snapshot(key, "ours")
		w.actor.made = time.Now().Add(-time.Hour)
		_, key = w.createJob("younger", nobodys)
		w.snapshot(key, "younger")
		if w.lists("jobs") != 0 {
			t.Errorf("it was listed: %s", strings.Join(w.requests.seen, ", "))
		}
	})
}
