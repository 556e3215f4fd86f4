package watch

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// A user who may create Pods in one namespace can write the UID of another user's Job into them: UIDs are no secret. What Pods
// declare is valid in their own namespace only: in the lists of both programs, and in what the Watcher keeps about templates.
func TestForgedOwnerOfAnotherNamespaceConcernsNoJobThere(t *testing.T) {
	shop, evil := newWorld(t), newWorld(t)
	j, key := shop.CreateJob("pi")
	j = shop.StartJob(j)
	own := shop.createPod(j, key, 0)
	forged := evil.MakePod(j, 1)
	forgedKey := events.Key{Function: key.Function, Namespace: evil.NS, UID: key.UID}

	t.Run("an inventory", func(t *testing.T) {
		r := clustertest.Only[events.JobListed](t, shop.act(key, effect.TakeInventory{ID: "i", Job: j.Name}))
		if len(r.Pods) != 1 || r.Pods[0].UID != own.UID || r.Job == nil {
			t.Errorf("of the Job: %+v", r)
		}
		r = clustertest.Only[events.JobListed](t, shop.act(forgedKey, effect.TakeInventory{ID: "i", Job: j.Name}))
		if len(r.Pods) != 1 || r.Pods[0].UID != forged.UID || r.Job != nil {
			t.Errorf("of a Job that is said to be in another namespace: %+v", r)
		}
	})
	t.Run("the lists and watches of a trigger", func(t *testing.T) {
		client, seen := clustertest.Client(t)
		x := startWatcher(t, &memorySink{}, client, seen)
		clustertest.Eventually(t, func() string {
			if len(of[events.JobListed](x.sink, key)) == 0 || len(of[events.JobListed](x.sink, forgedKey)) == 0 {
				return "both snapshots"
			}
			return ""
		})
		for _, r := range of[events.JobListed](x.sink, key) {
			if len(r.Pods) != 1 || r.Pods[0].UID != own.UID {
				t.Errorf("of the Job: %+v", r)
			}
		}
		for _, r := range of[events.JobListed](x.sink, forgedKey) {
			if len(r.Pods) != 1 || r.Pods[0].UID != forged.UID || r.Job != nil {
				t.Errorf("of a Job that is said to be in another namespace: %+v", r)
			}
		}
	})
	t.Run("a Pod of the template", func(t *testing.T) { // which the Watcher knows by now
		missing := clustertest.Only[events.JobGone](t, shop.act(forgedKey, clustertest.CreateEffect(j, 2)))
		if missing.Name != j.Name {
			t.Errorf("%+v", missing)
		}
		if got := evil.LivePod(clustertest.CreateEffect(j, 2).Name); got != nil {
			t.Errorf("the template of another namespace has become the Pod %s", got.Name)
		}
	})
}

// The same holds for a Job that names a ScheduledJob of another namespace as its owner.
func TestForgedRunOfAnotherNamespaceConcernsNoScheduledJobThere(t *testing.T) {
	shop, evil := newWorld(t), newWorld(t)
	s, key := shop.CreateSchedule("nightly")
	if _, err := evil.BatchV1().Jobs(evil.NS).Create(t.Context(), clustertest.Job("forged", func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind,
			Name: s.Name, UID: s.UID, Controller: new(true)}}
	}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := clustertest.Only[events.ScheduleListed](t, shop.act(key, effect.TakeInventory{ID: "i", Job: s.Name}))
	if len(r.Runs) != 0 || r.ScheduledJob == nil {
		t.Errorf("%+v", r)
	}
}
