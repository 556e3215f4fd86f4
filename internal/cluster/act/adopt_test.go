package act

import (
	"net/http"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestAdoptPod(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", clustertest.Picky("pi"))

	t.Run("an orphan becomes the Job's in one write", func(t *testing.T) {
		p := w.ForeignPod("orphan", map[string]string{"app": "pi", "mine": "stays"})
		patch := "PATCH /api/v1/namespaces/" + w.NS + "/pods/orphan"
		seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 7))).Pod
		live := w.LivePod("orphan")
		ref := metav1.GetControllerOf(live)
		if ref == nil || ref.UID != j.UID || ref.Kind != "Job" || ref.APIVersion != "batch/v1" || ref.Name != "pi" || !*ref.BlockOwnerDeletion {
			t.Errorf("owned by %+v", ref)
		}
		if live.Labels[v1alpha1.ManagedLabel] != "true" || live.Labels["mine"] != "stays" || live.Annotations[v1alpha1.SerialAnnotation] != "7" || !events.Held(live) {
			t.Errorf("is %+v", live.ObjectMeta)
		}
		if !seen.Held || seen.Serial != 7 || seen.Orphan || seen.Version != events.Version(live.ResourceVersion) || w.Requests.Count(patch) != 1 {
			t.Errorf("saw %+v after %d writes", seen, w.Requests.Count(patch))
		}
	})
	t.Run("without being held, where it has been counted", func(t *testing.T) {
		p := w.ForeignPod("counted", map[string]string{"app": "pi"})
		e := clustertest.AdoptEffect(j, p, 8)
		e.Hold = false
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, e)).Pod; seen.Held || seen.Serial != 8 || seen.Orphan {
			t.Errorf("saw %+v", seen)
		}
	})
	t.Run("one that is owned gets what it lacks", func(t *testing.T) {
		p := w.ForeignPod("owned", map[string]string{"app": "pi"}, clustertest.OwnedBy(j))
		seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 9))).Pod
		if live := w.LivePod("owned"); !seen.Held || seen.Serial != 9 || len(live.OwnerReferences) != 1 || live.Labels[v1alpha1.ManagedLabel] != "true" {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
	})
	t.Run("one that is owned and being deleted gets no finalizer", func(t *testing.T) {
		w.ForeignPod("ending", map[string]string{"app": "pi"}, clustertest.OwnedBy(j))
		p := w.deleteSlowly("ending")
		seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 10))).Pod
		if seen.Held || seen.Serial != 10 || !seen.Deleting {
			t.Errorf("saw %+v", seen)
		}
	})
	t.Run("the one of a generated selector is known by its label", func(t *testing.T) {
		j, key := w.CreateJob("generated")
		p := w.createPod(j, key, 0)
		orphan := w.EditPod(p.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, orphan, 3))).Pod; seen.Orphan || seen.Serial != 3 || !seen.Held {
			t.Errorf("saw %+v", seen)
		}
	})
}

// deleteSlowly deletes a Pod that a node runs, so that it stays for a while.
func (w *world) deleteSlowly(name string) *corev1.Pod {
	w.Helper()
	w.BindPod(name)
	if err := w.CoreV1().Pods(w.NS).Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	return w.LivePod(name)
}

// TestAdoptPodThatIsNotToBeHad: nothing is written if the Pod cannot be adopted.
func TestAdoptPodThatIsNotToBeHad(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", clustertest.Picky("pi"))
	mine := map[string]string{"app": "pi"}
	untouched := func(t *testing.T, p *corev1.Pod) {
		t.Helper()
		if now := w.LivePod(p.Name); now.ResourceVersion != p.ResourceVersion {
			t.Errorf("was written: %+v", now.ObjectMeta)
		}
	}
	t.Run("it has moved on", func(t *testing.T) {
		old := w.ForeignPod("moved", mine)
		now := w.EditPod("moved", func(p *corev1.Pod) { p.Labels["touched"] = "yes" })
		seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, old, 1))).Pod
		if seen.Version != events.Version(now.ResourceVersion) || !seen.Orphan {
			t.Errorf("saw %+v", seen)
		}
		untouched(t, now)
	})
	t.Run("it changes during the adoption", func(t *testing.T) {
		p := w.ForeignPod("moving", mine)
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if q.Method == http.MethodPatch {
				p = w.EditPod("moving", func(p *corev1.Pod) { p.Labels["touched"] = "yes" })
			}
			return nil, nil
		})
		defer w.Requests.Inject(nil)
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 1))).Pod; !seen.Orphan || seen.Version != events.Version(p.ResourceVersion) {
			t.Errorf("saw %+v", seen)
		}
		untouched(t, p)
	})
	t.Run("another controller takes it during the adoption", func(t *testing.T) {
		other, _ := w.CreateJob("other", clustertest.Picky("pi"))
		p := w.ForeignPod("taken", mine)
		w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
			if q.Method == http.MethodPatch {
				p = w.EditPod("taken", clustertest.OwnedBy(other))
			}
			return nil, nil
		})
		defer w.Requests.Inject(nil)
		if gone := clustertest.Only[events.PodGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1))).Pod; gone.UID != p.UID || gone.Name != "taken" {
			t.Errorf("%+v", gone)
		}
		untouched(t, p)
		clustertest.Only[events.PodGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1))) // nor can the Job adopt it any time later
		untouched(t, p)
	})
	t.Run("its labels do not match any more", func(t *testing.T) {
		w.ForeignPod("other-labels", mine)
		p := w.EditPod("other-labels", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "something"} })
		clustertest.Only[events.PodGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1)))
		untouched(t, p)
	})
	t.Run("it is being deleted", func(t *testing.T) {
		w.ForeignPod("ending", mine)
		p := w.deleteSlowly("ending")
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 1))).Pod; !seen.Deleting || !seen.Orphan {
			t.Errorf("saw %+v", seen)
		}
		untouched(t, p)
	})
	t.Run("it is gone, or another one", func(t *testing.T) {
		p := w.ForeignPod("brief", mine)
		w.DeletePodNow("brief")
		if gone := clustertest.Only[events.PodGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1))).Pod; gone.UID != p.UID {
			t.Errorf("%+v", gone)
		}
		again := w.ForeignPod("brief", mine)
		if gone := clustertest.Only[events.PodGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1))).Pod; gone.UID != p.UID {
			t.Errorf("%+v", gone)
		}
		untouched(t, again)
	})
}

// TestAdoptPodReadsTheJobLive, whatever the cache holds of it.
func TestAdoptPodReadsTheJobLive(t *testing.T) {
	w := newWorld(t)
	orphan := func(name string) *corev1.Pod { return w.ForeignPod(name, map[string]string{"app": "pi"}) }
	known := func(name string, change ...func(*batchv1.Job)) (*batchv1.Job, events.Key) {
		j, key := w.CreateJob(name, append(change, clustertest.Picky("pi"))...)
		w.createPod(j, key, 0) // now it is cached
		return j, key
	}
	stays := func(t *testing.T, p *corev1.Pod) {
		t.Helper()
		if metav1.GetControllerOf(w.LivePod(p.Name)) != nil {
			t.Error("it was adopted")
		}
	}
	t.Run("gone", func(t *testing.T) {
		j, key := known("gone")
		w.DeleteJob("gone")
		p := orphan("a")
		if gone := clustertest.Only[events.JobGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1))); gone.Name != "gone" {
			t.Errorf("%+v", gone)
		}
		w.CreateJob("gone", clustertest.Picky("pi")) // another Job of that name
		clustertest.Only[events.JobGone](t, w.act(key, clustertest.AdoptEffect(j, p, 1)))
		stays(t, p)
	})
	t.Run("being deleted", func(t *testing.T) {
		j, key := known("leaving", func(j *batchv1.Job) { j.Finalizers = []string{"example.com/stay"} })
		w.DeleteJob("leaving")
		p := orphan("b")
		if seen := clustertest.Only[events.JobObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 1))); !seen.Job.Deleting {
			t.Errorf("%+v", seen)
		}
		stays(t, p)
	})
	t.Run("not ours", func(t *testing.T) {
		j, key := w.CreateJob("foreign", clustertest.Picky("pi"), func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
		p := orphan("c")
		if seen := clustertest.Only[events.JobObserved](t, w.act(key, clustertest.AdoptEffect(j, p, 1))); !seen.Job.Foreign {
			t.Errorf("%+v", seen)
		}
		stays(t, p)
	})
}

func TestReleasePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	release := func(t *testing.T, name string, uid events.Pod) {
		t.Helper()
		gone := clustertest.Only[events.PodGone](t, w.act(key, effect.ReleasePod{Name: name, UID: uid.UID})).Pod
		if gone.UID != uid.UID || gone.Name != name {
			t.Errorf("%+v", gone)
		}
	}
	t.Run("removes what made it the Job's, and nothing else", func(t *testing.T) {
		p := w.createPod(j, key, 0)
		w.EditPod(p.Name, func(p *corev1.Pod) {
			p.Finalizers = append(p.Finalizers, "example.com/mine")
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: someoneElse})
		})
		for range 2 { // the second time changes nothing
			release(t, p.Name, p)
			live := w.LivePod(p.Name)
			if len(live.OwnerReferences) != 1 || live.OwnerReferences[0].UID != someoneElse || len(live.Finalizers) != 1 || live.Labels[v1alpha1.ManagedLabel] != "" {
				t.Errorf("is %+v", live.ObjectMeta)
			}
			if live.Annotations[v1alpha1.SerialAnnotation] != "0" || live.Labels[batchv1.JobNameLabel] != "pi" {
				t.Errorf("something else was changed: %+v", live.ObjectMeta)
			}
		}
	})
	t.Run("one that has lost its owner already is released all the same", func(t *testing.T) {
		p := w.createPod(j, key, 1)
		w.EditPod(p.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
		release(t, p.Name, p)
		if live := w.LivePod(p.Name); events.Held(live) || live.Labels[v1alpha1.ManagedLabel] != "" {
			t.Errorf("is %+v", live.ObjectMeta)
		}
	})
	t.Run("one that is gone, or another one", func(t *testing.T) {
		release(t, "absent", events.Pod{UID: someoneElse})
		p := w.createPod(j, key, 2)
		release(t, p.Name, events.Pod{UID: someoneElse})
		if live := w.LivePod(p.Name); !events.Held(live) || len(live.OwnerReferences) != 1 {
			t.Errorf("is %+v", live.ObjectMeta)
		}
	})
}
