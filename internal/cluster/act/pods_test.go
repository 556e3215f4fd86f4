package act

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

const someoneElse types.UID = "00000000-0000-0000-0000-000000000000"

func TestRemoveFinalizer(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 0)
	w.EndPod(p.Name, corev1.PodSucceeded)

	t.Run("of another UID", func(t *testing.T) {
		gone := clustertest.Only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: someoneElse}))
		if gone.Pod.UID != someoneElse || gone.Pod.Name != p.Name || gone.Pod.Version != 0 || !events.Held(w.LivePod(p.Name)) {
			t.Errorf("%+v", gone)
		}
	})
	t.Run("takes the finalizer and the field ownership", func(t *testing.T) {
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod
		live := w.LivePod(p.Name)
		if seen.Held || seen.Phase != events.Succeeded || seen.Serial != 0 || events.Held(live) || len(live.ManagedFields) != 0 {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
		if live.Labels[v1alpha1.ManagedLabel] != "true" || live.Annotations[v1alpha1.SerialAnnotation] != "0" || len(live.OwnerReferences) != 1 {
			t.Errorf("something else was changed: %+v", live.ObjectMeta)
		}
	})
	t.Run("again", func(t *testing.T) {
		before := w.LivePod(p.Name).ResourceVersion
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod; seen.Held {
			t.Errorf("%+v", seen)
		}
		if after := w.LivePod(p.Name).ResourceVersion; after != before {
			t.Errorf("a removal that had nothing to do wrote version %s after %s", after, before)
		}
	})
	t.Run("of a Pod that only waited for it", func(t *testing.T) {
		q := w.createPod(j, key, 1)
		w.DeletePodNow(q.Name)
		gone := clustertest.Only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: q.Name, UID: q.UID})).Pod
		if gone.UID != q.UID || gone.Serial != 1 || w.LivePod(q.Name) != nil {
			t.Errorf("%+v", gone)
		}
		missed := clustertest.Only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: q.Name, UID: q.UID})).Pod
		if missed.UID != q.UID || missed.Name != q.Name || missed.Version != 0 || missed.Serial != events.NoSerial {
			t.Errorf("%+v", missed)
		}
	})
	t.Run("field ownership can be kept", func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.KeepManagedFields = true })
		j, key := w.CreateJob("pi")
		p := w.createPod(j, key, 0)
		w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
		if live := w.LivePod(p.Name); events.Held(live) || len(live.ManagedFields) == 0 {
			t.Errorf("%+v", live.ObjectMeta)
		}
	})
}

func TestAddFinalizer(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 0)
	p = clustertest.Only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod

	t.Run("at another version", func(t *testing.T) {
		now := w.TouchPod(p.Name)
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version})).Pod
		if seen.Held || seen.Version != events.Version(now.ResourceVersion) || events.Held(w.LivePod(p.Name)) {
			t.Errorf("%+v", seen)
		}
		p = seen
	})
	t.Run("of another UID", func(t *testing.T) {
		clustertest.Only[events.PodGone](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: someoneElse, Version: p.Version}))
	})
	t.Run("adds the finalizer to those that are there", func(t *testing.T) {
		live := w.LivePod(p.Name)
		live.Finalizers = []string{"example.com/mine"}
		live, err := w.CoreV1().Pods(w.NS).Update(t.Context(), live, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: events.Version(live.ResourceVersion)})).Pod
		if live = w.LivePod(p.Name); !seen.Held || len(live.Finalizers) != 2 {
			t.Errorf("saw %+v, has %v", seen, live.Finalizers)
		}
	})
	t.Run("that is being deleted", func(t *testing.T) {
		q := w.createPod(j, key, 1)
		w.BindPod(q.Name)
		w.act(key, effect.RemoveFinalizer{Name: q.Name, UID: q.UID})
		if err := w.CoreV1().Pods(w.NS).Delete(t.Context(), q.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		v := events.Version(w.LivePod(q.Name).ResourceVersion)
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.AddFinalizer{Name: q.Name, UID: q.UID, Version: v})).Pod
		if seen.Held || !seen.Deleting {
			t.Errorf("%+v", seen)
		}
	})
	t.Run("that is gone", func(t *testing.T) {
		clustertest.Only[events.PodGone](t, w.act(key, effect.AddFinalizer{Name: "absent", UID: p.UID, Version: 1}))
	})
}

func TestDeletePod(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")

	t.Run("its finalizer removed, which removes a Pod that no node runs", func(t *testing.T) {
		p := w.createPod(j, key, 0)
		gone := clustertest.Only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})).Pod
		if gone.UID != p.UID || gone.Serial != 0 || w.LivePod(p.Name) != nil {
			t.Errorf("%+v", gone)
		}
		clustertest.Only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true}))
		clustertest.Only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID}))
	})
	t.Run("its finalizer removed, on a node", func(t *testing.T) {
		p := w.createPod(j, key, 1)
		w.BindPod(p.Name)
		v := events.Version(w.LivePod(p.Name).ResourceVersion)
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: v, RemoveFinalizer: true})).Pod
		live := w.LivePod(p.Name)
		if seen.Held || !seen.Deleting || live.DeletionTimestamp == nil || *live.DeletionGracePeriodSeconds != 30 || seen.Version != events.Version(live.ResourceVersion) {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
	})
	t.Run("its finalizer to be removed, but it has moved on", func(t *testing.T) {
		p := w.createPod(j, key, 2)
		now := w.EndPod(p.Name, corev1.PodSucceeded)
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true})).Pod
		live := w.LivePod(p.Name)
		if !seen.Held || seen.Phase != events.Succeeded || live.DeletionTimestamp != nil || live.ResourceVersion != now.ResourceVersion {
			t.Errorf("saw %+v, is %+v", seen, live.ObjectMeta)
		}
	})
	t.Run("held: it stays for counting", func(t *testing.T) {
		p := w.createPod(j, key, 3)
		seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})).Pod
		if !seen.Held || !seen.Deleting || w.LivePod(p.Name) == nil {
			t.Errorf("%+v", seen)
		}
		again := clustertest.Only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})).Pod
		if !again.Held || !again.Deleting {
			t.Errorf("%+v", again)
		}
	})
	t.Run("at another version", func(t *testing.T) {
		p := w.createPod(j, key, 4)
		w.TouchPod(p.Name)
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version})).Pod; seen.Deleting {
			t.Errorf("%+v", seen)
		}
		if seen := clustertest.Only[events.PodObserved](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID})).Pod; !seen.Deleting {
			t.Errorf("without a version: %+v", seen)
		}
	})
	t.Run("of another UID", func(t *testing.T) {
		p := w.createPod(j, key, 5)
		for _, unhold := range []bool{false, true} {
			clustertest.Only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: someoneElse, Version: p.Version, RemoveFinalizer: unhold}))
		}
		if live := w.LivePod(p.Name); live.DeletionTimestamp != nil || !events.Held(live) {
			t.Errorf("%+v", live.ObjectMeta)
		}
	})
}
