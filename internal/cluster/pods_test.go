package cluster

import (
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

const someoneElse types.UID = "00000000-0000-0000-0000-000000000000"

func TestCreatePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	first := w.createPod(j, key, 0)
	if !first.Held || first.Serial != 0 || first.Owner != "pi" || first.Phase != events.Pending || first.Version == 0 {
		t.Errorf("the sight is %+v", first)
	}
	live := w.livePod(first.Name)
	if live.Labels[v1alpha1.ManagedLabel] != "true" || events.OwnerUID(live) != j.UID || live.UID != first.UID {
		t.Errorf("the Pod is %+v", live.ObjectMeta)
	}

	t.Run("again meets the same Pod", func(t *testing.T) {
		if again := only[events.PodObserved](t, w.act(key, createEffect(j, 0))).Pod; again.UID != first.UID {
			t.Errorf("met %+v", again)
		}
	})
	t.Run("many cost one GET of the Job", func(t *testing.T) {
		if n := w.requests.count("GET /apis/batch/v1/namespaces/" + w.ns + "/jobs/pi"); n != 1 {
			t.Errorf("%d GETs of the Job", n)
		}
	})
	t.Run("a stranger has the name", func(t *testing.T) {
		e := createEffect(j, 7)
		e.Name = "stranger"
		_, err := w.CoreV1().Pods(w.ns).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: e.Name},
			Spec: jobObject("x").Spec.Template.Spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		refused := only[events.EffectRefused](t, w.act(key, e))
		if refused.Effect != "CreatePod" || refused.Serial != 7 || refused.Reason != "AlreadyExists" || refused.At.Unix() != 1000 {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("another serial of ours has the name", func(t *testing.T) {
		e := createEffect(j, 8)
		e.Name = first.Name
		if refused := only[events.EffectRefused](t, w.act(key, e)); refused.Reason != "AlreadyExists" {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("a Pod of an earlier Job of the same name has the name", func(t *testing.T) {
		w.deleteJob("pi")
		j2, key2 := w.createJob("pi")
		e := createEffect(j2, 0)
		e.Name = first.Name
		if refused := only[events.EffectRefused](t, w.act(key2, e)); refused.Reason != "AlreadyExists" {
			t.Errorf("%+v", refused)
		}
	})
}

func (w *world) deleteJob(name string) {
	w.Helper()
	err := w.BatchV1().Jobs(w.ns).Delete(w.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil {
		w.Fatal(err)
	}
}

func TestCreatePodsOfOneJobAtOnce(t *testing.T) {
	w := newWorld(t, func(c *ActorConfig) { c.Concurrency = 4 })
	j, key := w.createJob("wide")
	var wg sync.WaitGroup
	for serial := range 30 {
		wg.Go(func() {
			if _, err := w.actor.Act(t.Context(), key, createEffect(j, serial)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.requests.count("GET /apis/batch/v1/namespaces/" + w.ns + "/jobs/wide"); n != 1 {
		t.Errorf("%d GETs of the Job", n)
	}
	if n := w.requests.count("POST /api/v1/namespaces/" + w.ns + "/pods"); n != 30 {
		t.Errorf("%d POSTs", n)
	}
}

func TestCreatePodWithoutItsJob(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("gone")
	w.deleteJob("gone")
	only[events.JobGone](t, w.act(key, createEffect(j, 0)))
	w.createJob("gone") // another one
	if gone := only[events.JobGone](t, w.act(key, createEffect(j, 0))); gone.Name != "gone" {
		t.Errorf("%+v", gone)
	}

	leaving, leavingKey := w.createJob("leaving", func(j *batchv1.Job) { j.Finalizers = []string{"example.com/stay"} })
	w.deleteJob("leaving")
	if seen := only[events.JobObserved](t, w.act(leavingKey, createEffect(leaving, 0))); !seen.Job.Deleting {
		t.Errorf("%+v", seen)
	}
	if pods, err := w.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 0 {
		t.Errorf("there are Pods: %v %v", pods.Items, err)
	}
}

func TestCreatePodRefused(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")

	t.Run("invalid, without its value", func(t *testing.T) {
		bad, badKey := w.createJob("bad", func(j *batchv1.Job) { j.Spec.Template.Finalizers = []string{"Top Secret"} })
		refused := only[events.EffectRefused](t, w.act(badKey, createEffect(bad, 3)))
		if refused.Reason != "Invalid" || refused.Serial != 3 || strings.Contains(refused.Message, "Secret") ||
			!strings.Contains(refused.Message, "field metadata.finalizers: FieldValueInvalid") {
			t.Errorf("%+v", refused)
		}
	})
	t.Run("quota", func(t *testing.T) {
		none := corev1.ResourceList{"pods": resource.MustParse("0")}
		quota, err := w.CoreV1().ResourceQuotas(w.ns).Create(t.Context(), &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // the quota controller's part
		if _, err := w.CoreV1().ResourceQuotas(w.ns).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		serial := 10
		eventually(t, func() string { // the admission plugin hears of it by a watch
			serial++
			refused, ok := w.act(key, createEffect(j, serial))[0].(events.EffectRefused)
			if !ok || !strings.Contains(refused.Message, "exceeded quota: none") {
				return "a refusal because of the quota"
			}
			if refused.Reason != "Forbidden" || refused.Serial != serial {
				t.Fatalf("%+v", refused)
			}
			return ""
		})
	})
	t.Run("namespace is terminating", func(t *testing.T) {
		if err := w.CoreV1().Namespaces().Delete(t.Context(), w.ns, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		// No namespace controller runs: it stays terminating. The admission plugin hears of it by a watch.
		serial := 100
		eventually(t, func() string {
			serial++
			facts := w.act(key, createEffect(j, serial))
			if r, ok := facts[0].(events.EffectRefused); ok && r.Reason == "NamespaceTerminating" && r.Message != "" {
				return ""
			}
			return "a refusal because of the namespace"
		})
	})
}

func TestFindPod(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	p := w.createPod(j, key, 4)
	if seen := only[events.PodObserved](t, w.act(key, effect.FindPod{Name: p.Name, Serial: 4})).Pod; seen.UID != p.UID {
		t.Errorf("%+v", seen)
	}
	for _, e := range []effect.FindPod{{Name: "nobody", Serial: 5}, {Name: p.Name, Serial: 5}} {
		if gone := only[events.PodGone](t, w.act(key, e)).Pod; gone.UID != "" || gone.Serial != 5 || gone.Name != e.Name {
			t.Errorf("%+v", gone)
		}
	}
}

func TestReleasePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	p := w.createPod(j, key, 0)
	w.endPod(p.Name, corev1.PodSucceeded)

	t.Run("of another UID", func(t *testing.T) {
		gone := only[events.PodGone](t, w.act(key, effect.ReleasePod{Name: p.Name, UID: someoneElse}))
		if gone.Pod.UID != someoneElse || gone.Pod.Name != p.Name || gone.Pod.Version != 0 || !events.Held(w.livePod(p.Name)) {
			t.Errorf("%+v", gone)
		}
	})
	t.Run("takes the finalizer and the field ownership", func(t *testing.T) {
		seen := only[events.PodObserved](t, w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID})).Pod
		live := w.livePod(p.Name)
		if seen.Held || seen.Phase != events.Succeeded || seen.Serial != 0 || events.Held(live) || len(live.ManagedFields) != 0 {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
		if live.Labels[v1alpha1.ManagedLabel] != "true" || live.Annotations[v1alpha1.SerialAnnotation] != "0" || len(live.OwnerReferences) != 1 {
			t.Errorf("something else was changed: %+v", live.ObjectMeta)
		}
	})
	t.Run("again", func(t *testing.T) {
		before := w.livePod(p.Name).ResourceVersion
		if seen := only[events.PodObserved](t, w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID})).Pod; seen.Held {
			t.Errorf("%+v", seen)
		}
		if after := w.livePod(p.Name).ResourceVersion; after != before {
			t.Errorf("a release that had nothing to do wrote version %s after %s", after, before)
		}
	})
	t.Run("of a Pod that only waited for it", func(t *testing.T) {
		q := w.createPod(j, key, 1)
		w.deletePodNow(q.Name)
		gone := only[events.PodGone](t, w.act(key, effect.ReleasePod{Name: q.Name, UID: q.UID})).Pod
		if gone.UID != q.UID || gone.Serial != 1 || w.livePod(q.Name) != nil {
			t.Errorf("%+v", gone)
		}
		missed := only[events.PodGone](t, w.act(key, effect.ReleasePod{Name: q.Name, UID: q.UID})).Pod
		if missed.UID != q.UID || missed.Name != q.Name || missed.Version != 0 || missed.Serial != events.NoSerial {
			t.Errorf("%+v", missed)
		}
	})
	t.Run("field ownership can be kept", func(t *testing.T) {
		w := newWorld(t, func(c *ActorConfig) { c.KeepManagedFields = true })
		j, key := w.createJob("pi")
		p := w.createPod(j, key, 0)
		w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID})
		if live := w.livePod(p.Name); events.Held(live) || len(live.ManagedFields) == 0 {
			t.Errorf("%+v", live.ObjectMeta)
		}
	})
}

func (w *world) deletePodNow(name string) {
	w.Helper()
	if err := w.CoreV1().Pods(w.ns).Delete(w.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		w.Fatal(err)
	}
}

func TestHoldPod(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	p := w.createPod(j, key, 0)
	p = only[events.PodObserved](t, w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID})).Pod

	t.Run("at another version", func(t *testing.T) {
		now := w.touchPod(p.Name)
		seen := only[events.PodObserved](t, w.act(key, effect.HoldPod{Name: p.Name, UID: p.UID, Version: p.Version})).Pod
		if seen.Held || seen.Version != versionOf(now.ResourceVersion) || events.Held(w.livePod(p.Name)) {
			t.Errorf("%+v", seen)
		}
		p = seen
	})
	t.Run("of another UID", func(t *testing.T) {
		only[events.PodGone](t, w.act(key, effect.HoldPod{Name: p.Name, UID: someoneElse, Version: p.Version}))
	})
	t.Run("adds the finalizer to those that are there", func(t *testing.T) {
		live := w.livePod(p.Name)
		live.Finalizers = []string{"example.com/mine"}
		live, err := w.CoreV1().Pods(w.ns).Update(t.Context(), live, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := only[events.PodObserved](t, w.act(key, effect.HoldPod{Name: p.Name, UID: p.UID, Version: versionOf(live.ResourceVersion)})).Pod
		if live = w.livePod(p.Name); !seen.Held || len(live.Finalizers) != 2 {
			t.Errorf("saw %+v, has %v", seen, live.Finalizers)
		}
	})
	t.Run("that is being deleted", func(t *testing.T) {
		q := w.createPod(j, key, 1)
		w.bindPod(q.Name)
		w.act(key, effect.ReleasePod{Name: q.Name, UID: q.UID})
		if err := w.CoreV1().Pods(w.ns).Delete(t.Context(), q.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		v := versionOf(w.livePod(q.Name).ResourceVersion)
		seen := only[events.PodObserved](t, w.act(key, effect.HoldPod{Name: q.Name, UID: q.UID, Version: v})).Pod
		if seen.Held || !seen.Deleting {
			t.Errorf("%+v", seen)
		}
	})
	t.Run("that is gone", func(t *testing.T) {
		only[events.PodGone](t, w.act(key, effect.HoldPod{Name: "nobody", UID: p.UID, Version: 1}))
	})
}

func TestDeletePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")

	t.Run("released, which removes a Pod that no node runs", func(t *testing.T) {
		p := w.createPod(j, key, 0)
		gone := only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, Release: true})).Pod
		if gone.UID != p.UID || gone.Serial != 0 || w.livePod(p.Name) != nil {
			t.Errorf("%+v", gone)
		}
		only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, Release: true}))
		only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID}))
	})
	t.Run("released, on a node", func(t *testing.T) {
		p := w.createPod(j, key, 1)
		w.bindPod(p.Name)
		v := versionOf(w.livePod(p.Name).ResourceVersion)
		seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: v, Release: true})).Pod
		live := w.livePod(p.Name)
		if seen.Held || !seen.Deleting || live.DeletionTimestamp == nil || *live.DeletionGracePeriodSeconds != 30 || seen.Version != versionOf(live.ResourceVersion) {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
	})
	t.Run("released, but it has moved on", func(t *testing.T) {
		p := w.createPod(j, key, 2)
		now := w.endPod(p.Name, corev1.PodSucceeded)
		seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, Release: true})).Pod
		live := w.livePod(p.Name)
		if !seen.Held || seen.Phase != events.Succeeded || live.DeletionTimestamp != nil || live.ResourceVersion != now.ResourceVersion {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
	})
	t.Run("held: it stays for counting", func(t *testing.T) {
		p := w.createPod(j, key, 3)
		seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})).Pod
		if !seen.Held || !seen.Deleting || w.livePod(p.Name) == nil {
			t.Errorf("%+v", seen)
		}
		again := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})).Pod
		if !again.Held || !again.Deleting {
			t.Errorf("%+v", again)
		}
	})
	t.Run("at another version", func(t *testing.T) {
		p := w.createPod(j, key, 4)
		w.touchPod(p.Name)
		if seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version})).Pod; seen.Deleting {
			t.Errorf("%+v", seen)
		}
		if seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})).Pod; !seen.Deleting {
			t.Errorf("without a version: %+v", seen)
		}
	})
	t.Run("of another UID", func(t *testing.T) {
		p := w.createPod(j, key, 5)
		for _, release := range []bool{false, true} {
			only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: someoneElse, Version: p.Version, Release: release}))
		}
		if live := w.livePod(p.Name); live.DeletionTimestamp != nil || !events.Held(live) {
			t.Errorf("%+v", live.ObjectMeta)
		}
	})
}

// TestForeignJobs: whoever sends a fact about another controller's Job gets no Pod for it.
func TestForeignJobs(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	if seen := only[events.JobObserved](w, w.act(key, createEffect(j, 0))); !seen.Job.Foreign {
		t.Errorf("got %+v, want it called foreign", seen.Job)
	}
	roster := only[events.JobListed](w, w.act(key, effect.TakeInventory{ID: "ask", Job: j.Name}))
	if roster.Job == nil || !roster.Job.Foreign {
		t.Errorf("got %+v, want a foreign Job", roster)
	}
	if pods, err := w.CoreV1().Pods(w.ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) > 0 {
		t.Errorf("got %d Pods, %v; want none", len(pods.Items), err)
	}
}
