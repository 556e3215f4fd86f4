package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

const someoneElse types.UID = "00000000-0000-0000-0000-000000000000"

func TestRemoveFinalizer(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	p := w.createPod(j, key, 0)
	w.endPod(p.Name, corev1.PodSucceeded)

	t.Run("of another UID", func(t *testing.T) {
		gone := only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: someoneElse}))
		if gone.Pod.UID != someoneElse || gone.Pod.Name != p.Name || gone.Pod.Version != 0 || !events.Held(w.livePod(p.Name)) {
			t.Errorf("%+v", gone)
		}
	})
	t.Run("takes the finalizer and the field ownership", func(t *testing.T) {
		seen := only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod
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
		if seen := only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod; seen.Held {
			t.Errorf("%+v", seen)
		}
		if after := w.livePod(p.Name).ResourceVersion; after != before {
			t.Errorf("a release that had nothing to do wrote version %s after %s", after, before)
		}
	})
	t.Run("of a Pod that only waited for it", func(t *testing.T) {
		q := w.createPod(j, key, 1)
		w.deletePodNow(q.Name)
		gone := only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: q.Name, UID: q.UID})).Pod
		if gone.UID != q.UID || gone.Serial != 1 || w.livePod(q.Name) != nil {
			t.Errorf("%+v", gone)
		}
		missed := only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: q.Name, UID: q.UID})).Pod
		if missed.UID != q.UID || missed.Name != q.Name || missed.Version != 0 || missed.Serial != events.NoSerial {
			t.Errorf("%+v", missed)
		}
	})
	t.Run("field ownership can be kept", func(t *testing.T) {
		w := newWorld(t, func(c *ActorConfig) { c.KeepManagedFields = true })
		j, key := w.createJob("pi")
		p := w.createPod(j, key, 0)
		w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
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

func TestAddFinalizer(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")
	p := w.createPod(j, key, 0)
	p = only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod

	t.Run("at another version", func(t *testing.T) {
		now := w.touchPod(p.Name)
		seen := only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version})).Pod
		if seen.Held || seen.Version != events.Version(now.ResourceVersion) || events.Held(w.livePod(p.Name)) {
			t.Errorf("%+v", seen)
		}
		p = seen
	})
	t.Run("of another UID", func(t *testing.T) {
		only[events.PodGone](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: someoneElse, Version: p.Version}))
	})
	t.Run("adds the finalizer to those that are there", func(t *testing.T) {
		live := w.livePod(p.Name)
		live.Finalizers = []string{"example.com/mine"}
		live, err := w.CoreV1().Pods(w.ns).Update(t.Context(), live, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: events.Version(live.ResourceVersion)})).Pod
		if live = w.livePod(p.Name); !seen.Held || len(live.Finalizers) != 2 {
			t.Errorf("saw %+v, has %v", seen, live.Finalizers)
		}
	})
	t.Run("that is being deleted", func(t *testing.T) {
		q := w.createPod(j, key, 1)
		w.bindPod(q.Name)
		w.act(key, effect.RemoveFinalizer{Name: q.Name, UID: q.UID})
		if err := w.CoreV1().Pods(w.ns).Delete(t.Context(), q.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		v := events.Version(w.livePod(q.Name).ResourceVersion)
		seen := only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: q.Name, UID: q.UID, Version: v})).Pod
		if seen.Held || !seen.Deleting {
			t.Errorf("%+v", seen)
		}
	})
	t.Run("that is gone", func(t *testing.T) {
		only[events.PodGone](t, w.act(key, effect.AddFinalizer{Name: "nobody", UID: p.UID, Version: 1}))
	})
}

func TestDeletePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.createJob("pi")

	t.Run("released, which removes a Pod that no node runs", func(t *testing.T) {
		p := w.createPod(j, key, 0)
		gone := only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})).Pod
		if gone.UID != p.UID || gone.Serial != 0 || w.livePod(p.Name) != nil {
			t.Errorf("%+v", gone)
		}
		only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true}))
		only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID}))
	})
	t.Run("released, on a node", func(t *testing.T) {
		p := w.createPod(j, key, 1)
		w.bindPod(p.Name)
		v := events.Version(w.livePod(p.Name).ResourceVersion)
		seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: v, RemoveFinalizer: true})).Pod
		live := w.livePod(p.Name)
		if seen.Held || !seen.Deleting || live.DeletionTimestamp == nil || *live.DeletionGracePeriodSeconds != 30 || seen.Version != events.Version(live.ResourceVersion) {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
	})
	t.Run("released, but it has moved on", func(t *testing.T) {
		p := w.createPod(j, key, 2)
		now := w.endPod(p.Name, corev1.PodSucceeded)
		seen := only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})).Pod
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
			only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: someoneElse, Version: p.Version, RemoveFinalizer: release}))
		}
		if live := w.livePod(p.Name); live.DeletionTimestamp != nil || !events.Held(live) {
			t.Errorf("%+v", live.ObjectMeta)
		}
	})
}
