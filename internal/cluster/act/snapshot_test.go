package act

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
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
	return clustertest.Only[events.JobListed](w, w.act(key, effect.TakeInventory{ID: "i", Job: name}))
}

// TestSnapshotOfFailedPods: if the Job limits how many are kept, they are needed after they have been counted.
func TestSnapshotOfFailedPods(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("limited", clustertest.Limited("0"))
	failed, _ := w.settledPods(w.StartJob(j), key)
	if got := names(w.snapshot(key, "limited")); !slices.Equal(got, []string{failed.Name}) {
		t.Errorf("Pods %v", got)
	}
	free, freeKey := w.CreateJob("free")
	w.settledPods(w.StartJob(free), freeKey)
	if got := names(w.snapshot(freeKey, "free")); len(got) != 0 {
		t.Errorf("Pods %v", got)
	}
}

// TestSnapshotOfOrphans: the snapshot has those that the Job may adopt, whatever their phase, and no other unmarked Pods.
func TestSnapshotOfOrphans(t *testing.T) {
	w := newWorld(t)
	pi := map[string]string{"app": "pi"}
	w.ForeignPod("early", pi) // before there is a Job
	w.ForeignPod("ended", pi)
	w.EndPod("ended", corev1.PodSucceeded)
	w.ForeignPod("another", map[string]string{"app": "another"})
	j, key := w.CreateJob("pi", clustertest.Picky("pi"))
	w.ForeignPod("owned", pi, clustertest.OwnedBy(j))
	other, _ := w.CreateJob("other", clustertest.Picky("pi"))
	w.ForeignPod("taken", pi, clustertest.OwnedBy(other))

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
		w.Finish(w.StartJob(w.LiveJob("pi")))
		if got := names(w.snapshot(key, "pi")); len(got) != 0 {
			t.Errorf("Pods %v", got)
		}
	})
	t.Run("by the generated label", func(t *testing.T) {
		j, key := w.CreateJob("generated")
		p := w.createPod(w.StartJob(j), key, 0)
		w.EditPod(p.Name, func(p *corev1.Pod) { p.OwnerReferences = nil })
		if r := w.snapshot(key, "generated"); len(r.Pods) != 1 || !r.Pods[0].Orphan || r.Pods[0].Labels != nil {
			t.Errorf("%+v", r.Pods)
		}
	})
}

// TestSnapshotOfAPodThatIsAdoptedMeanwhile: whatever happens between two lists, the snapshot has the Pod once, in its newest
// state.
func TestSnapshotOfAPodThatIsAdoptedMeanwhile(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", clustertest.Picky("pi"))
	adopted, ended := w.ForeignPod("adopted", map[string]string{"app": "pi"}), w.ForeignPod("ended", map[string]string{"app": "pi"})
	w.Requests.Inject(func(q *http.Request) (*http.Response, error) {
		if q.Method == http.MethodGet && q.URL.Path == w.podsPath() && q.URL.Query().Get("labelSelector") == cluster.MarkedPods { // the last list
			w.Requests.Inject(nil)
			w.act(key, clustertest.AdoptEffect(j, adopted, 0))
			p := clustertest.Only[events.PodObserved](t, w.act(key, clustertest.AdoptEffect(j, ended, 1))).Pod
			w.EndPod("ended", corev1.PodSucceeded)
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

// TestInventoryOfATakeOver: the built-in controller creates Pods before it writes a status.
func TestInventoryOfATakeOver(t *testing.T) {
	builtIn := func(j *batchv1.Job) { j.Spec.ManagedBy = nil }
	unmanaged := func(made time.Time) func(*Config) {
		return func(c *Config) {
			c.Claim.Unmanaged = true
			c.Now = func() time.Time { return made }
		}
	}
	t.Run("a Job that may be older than the Actor is listed with the Pods that others made", func(t *testing.T) {
		w := newWorld(t, unmanaged(time.Now()))
		j, key := w.CreateJob("theirs", builtIn)
		w.ForeignPod("made", j.Spec.Template.Labels, clustertest.OwnedBy(j))
		if r := w.snapshot(key, "theirs"); !slices.Equal(names(r), []string{"made"}) || r.Pods[0].Serial != events.NoSerial {
			t.Errorf("Pods %+v", r.Pods)
		}
	})
	t.Run("a younger one, or one that names jobstream, costs one GET", func(t *testing.T) {
		w := newWorld(t, unmanaged(time.Now()))
		_, key := w.CreateJob("ours")
		w.snapshot(key, "ours")
		w.actor.made = time.Now().Add(-time.Hour)
		_, key = w.CreateJob("younger", builtIn)
		w.snapshot(key, "younger")
		if w.lists("jobs") != 0 {
			t.Errorf("it was listed: %s", strings.Join(w.Requests.Seen, ", "))
		}
	})
}
