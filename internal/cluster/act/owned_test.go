package act

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

// Any client that can write on the bus can make the reconciler decide on any effect, about any object whose name it knows. An
// object that does not belong to jobstream, according to the API server, stays as it is; and the answer reports that it is none
// of the Job's.
func TestEffectsOnForeignObjectsDoNothing(t *testing.T) {
	w := newWorld(t)
	ours, ourKey := w.CreateJob("ours")
	ours = w.StartJob(ours)
	w.createPod(ours, ourKey, 0) // so that the Job is cached
	other, _ := w.CreateJob("other")
	builtIn, builtInKey := w.CreateJob("built-in", unmanaged)
	noJob := events.Key{Function: "job", Namespace: w.NS, UID: someoneElse}
	held := func(p *corev1.Pod) { p.Finalizers = []string{batchv1.JobTrackingFinalizer} }
	for _, c := range []struct {
		name string
		key  events.Key
		pod  *corev1.Pod
	}{
		{"a Pod without an owner", ourKey, w.strangePod("loose", held)},
		{"a Pod of a ReplicaSet", ourKey, w.strangePod("web", held, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs", Controller: new(true)}}
		})},
		{"a Pod of another Job of jobstream", ourKey, w.MakePod(other, 0)},
		{"a Pod of a Job that Kubernetes runs", builtInKey, w.MakePod(builtIn, 0)},
		{"the same, by the key of a Job of jobstream", ourKey, w.MakePod(builtIn, 1)},
		{"a Pod of a Job of jobstream, by a key without a Job", noJob, w.MakePod(ours, 5)},
	} {
		version := events.Version(c.pod.ResourceVersion)
		for _, e := range []effect.Effect{
			effect.RemoveFinalizer{Name: c.pod.Name, UID: c.pod.UID},
			effect.AddFinalizer{Name: c.pod.Name, UID: c.pod.UID, Version: version},
			effect.AdoptPod{Job: "ours", Name: c.pod.Name, UID: c.pod.UID, Version: version, Serial: 3, Hold: true},
			effect.ReleasePod{Name: c.pod.Name, UID: c.pod.UID},
			effect.DeletePod{Name: c.pod.Name, UID: c.pod.UID},
			effect.DeletePod{Name: c.pod.Name, UID: c.pod.UID, Version: version},
			effect.DeletePod{Name: c.pod.Name, UID: c.pod.UID, Version: version, RemoveFinalizer: true},
		} {
			t.Run(c.name+": "+e.Kind(), func(t *testing.T) {
				for _, f := range w.act(c.key, e) {
					switch f := f.(type) {
					case events.PodGone, events.JobGone, events.JobObserved:
					case events.PodObserved: // of an orphan that was to get the finalizer: it is not the Job's
						if f.Pod.Orphan && e.Kind() == (effect.AddFinalizer{}).Kind() {
							continue
						}
						t.Errorf("answers %#v", f)
					default:
						t.Errorf("answers %#v", f)
					}
				}
				if live := w.LivePod(c.pod.Name); live == nil || live.ResourceVersion != c.pod.ResourceVersion {
					t.Errorf("it has become %+v", live)
				}
			})
		}
	}
	t.Run("the status of a Job that Kubernetes runs", func(t *testing.T) {
		e := effect.WriteJobStatus{Job: builtIn.Name, Version: events.Version(builtIn.ResourceVersion), Status: batchv1.JobStatus{Active: 3}}
		if saw := clustertest.Only[events.JobObserved](t, w.act(builtInKey, e)).Job; !saw.Foreign || w.LiveJob(builtIn.Name).ResourceVersion != builtIn.ResourceVersion {
			t.Errorf("%+v", saw)
		}
	})
	t.Run("a Job that is no run of the ScheduledJob", func(t *testing.T) {
		_, key := w.CreateSchedule("nightly")
		for _, j := range []*batchv1.Job{other, builtIn} {
			clustertest.Only[events.RunGone](t, w.act(key, effect.DeleteRun{Name: j.Name, UID: j.UID}))
			if w.LiveJob(j.Name).DeletionTimestamp != nil {
				t.Errorf("the Job %s was deleted", j.Name)
			}
		}
	})
}

// strangePod creates a Pod that no claimed Job has created.
func (w *world) strangePod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clustertest.Job("x").Spec.Template.Spec}
	for _, f := range change {
		f(p)
	}
	p, err := w.CoreV1().Pods(w.NS).Create(w.Context(), p, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// Looking up the owner of a Pod costs nothing if the Actor has created it and written the status of its Job. For a restarted
// Actor it costs two reads for each Job that it has not met.
func TestLookingWhoseAPodIsCostsNothingInTheUsualCase(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	j = w.StartJob(j)
	pods := []events.Pod{w.createPod(j, key, 0), w.createPod(j, key, 1), w.createPod(j, key, 2)}
	reads := func() int {
		n := w.Requests.Count("GET /apis/batch/v1/namespaces/" + w.NS + "/jobs/pi")
		for _, p := range pods {
			n += w.Requests.Count("GET /api/v1/namespaces/" + w.NS + "/pods/" + p.Name)
		}
		return n
	}
	before := reads()
	w.act(key, effect.RemoveFinalizer{Name: pods[0].Name, UID: pods[0].UID})
	w.act(key, effect.DeletePod{Name: pods[0].Name, UID: pods[0].UID})
	w.act(key, effect.DeletePod{Name: pods[1].Name, UID: pods[1].UID, Version: pods[1].Version, RemoveFinalizer: true})
	if n := reads() - before; n != 0 {
		t.Errorf("%d reads", n)
	}

	fresh, err := New(Config{Client: w.Client, ScheduledJobs: w.Admin})
	if err != nil {
		t.Fatal(err)
	}
	w.actor, before = fresh, reads()
	again := clustertest.Only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: pods[2].Name, UID: pods[2].UID})).Pod
	if n := reads() - before; again.Held || n != 2 {
		t.Errorf("a fresh Actor: held %v after %d reads", again.Held, n)
	}
}

// An orphan counts for no Job any more, and has no owner by which it could be distinguished: the managed label, the generated
// label and the selector decide which Jobs may remove its finalizer.
func TestFinalizersOfOrphansAreRemoved(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	j = w.StartJob(j)
	for name, change := range map[string]func(*corev1.Pod){
		"marked":     func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.ManagedLabel: "true"} },
		"of the Job": func(p *corev1.Pod) { p.Labels = map[string]string{batchv1.ControllerUidLabel: string(j.UID)} },
	} {
		t.Run(name, func(t *testing.T) {
			p := w.createPod(j, key, len(name))
			live := w.LivePod(p.Name)
			live.OwnerReferences, live.Labels = nil, nil
			change(live)
			if _, err := w.CoreV1().Pods(w.NS).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if saw := clustertest.Only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod; saw.Held {
				t.Errorf("%+v", saw)
			}
		})
	}
	t.Run("a Pod of a Job that is gone", func(t *testing.T) {
		gone, goneKey := w.CreateJob("gone")
		p := w.createPod(w.StartJob(gone), goneKey, 0)
		w.DeleteJob("gone")
		fresh, err := New(Config{Client: w.Client, ScheduledJobs: w.Admin, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		w.actor = fresh
		if saw := clustertest.Only[events.PodObserved](t, w.act(goneKey, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod; saw.Held {
			t.Errorf("%+v", saw)
		}
	})
}

// A user may have written the name of an owner into a Pod, and its UID, too. That no Job has that name proves nothing about the
// Job that has the UID.
func TestForgedNameOfAnOwnerMakesNoJobGone(t *testing.T) {
	w := newWorld(t)
	builtIn, key := w.CreateJob("built-in", unmanaged)
	real := w.MakePod(builtIn, 0) // it is owned by the Job, as its own controller would have made it
	forged := w.strangePod("forged", func(p *corev1.Pod) {
		p.Finalizers = []string{batchv1.JobTrackingFinalizer}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "no-such", UID: builtIn.UID, Controller: new(true)}}
	})
	w.act(key, effect.RemoveFinalizer{Name: forged.Name, UID: forged.UID})
	clustertest.Only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: real.Name, UID: real.UID}))
	if live := w.LivePod(real.Name); live.ResourceVersion != real.ResourceVersion {
		t.Errorf("it has become %+v", live.ObjectMeta)
	}
}

// A Pod with the finalizer whose Job has just gone is not gone: a reconciler that takes it for gone forgets to remove the finalizer.
func TestPodOfAJobThatHasJustGoneIsNotTakenForGone(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("gone")
	p := w.createPod(w.StartJob(j), key, 0)
	w.DeleteJob("gone")
	fresh, err := New(Config{Client: w.Client, ScheduledJobs: w.Admin})
	if err != nil {
		t.Fatal(err)
	}
	w.actor = fresh
	for _, e := range []effect.Effect{
		effect.DeletePod{Name: p.Name, UID: p.UID, Version: p.Version, RemoveFinalizer: true},
		effect.DeletePod{Name: p.Name, UID: p.UID},
		effect.AddFinalizer{Name: p.Name, UID: p.UID, Version: p.Version},
		effect.ReleasePod{Name: p.Name, UID: p.UID},
	} {
		if gone := clustertest.Only[events.JobGone](t, w.act(key, e)); gone.Name != "gone" {
			t.Errorf("%s: %+v", e, gone)
		}
	}
}

// The former owner of a Pod counts for nothing once an answer has shown that it has none.
func TestPodThatLostItsOwnerStays(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi")
	p := w.createPod(w.StartJob(j), key, 0)
	live := w.LivePod(p.Name)
	live.OwnerReferences, live.Labels = nil, nil
	if _, err := w.CoreV1().Pods(w.NS).Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID}) // reads the Pod, because its owner is gone from it
	clustertest.Only[events.PodGone](t, w.act(key, effect.DeletePod{Name: p.Name, UID: p.UID}))
	if live := w.LivePod(p.Name); live == nil || live.DeletionTimestamp != nil {
		t.Errorf("it has become %+v", live)
	}
}

// A Pod with so many labels that not all are compared seems not to match. It is not released: the next one would seem so, too.
func TestPodWithTooManyLabelsIsNotReleased(t *testing.T) {
	w := newWorld(t)
	j, key := w.CreateJob("pi", clustertest.Picky("pi"), func(j *batchv1.Job) {
		j.Spec.Selector.MatchLabels = map[string]string{"zzz": "last"}
		j.Spec.Template.Labels = map[string]string{"zzz": "last"}
		for n := range events.MaxLabels {
			j.Spec.Template.Labels[fmt.Sprintf("a%03d", n)] = "x"
		}
	})
	if seen := events.ProjectJob(j, events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}); len(seen.Unsupported) != 1 {
		t.Errorf("it is started: %q", seen.Unsupported)
	}
	p := w.createPod(w.StartJob(j), key, 0) // created by an older version
	refused := clustertest.Only[events.EffectRefused](t, w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID}))
	if refused.Reason != "TooManyLabels" || metav1.GetControllerOf(w.LivePod(p.Name)) == nil {
		t.Errorf("%+v", refused)
	}
}
