package watch

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestWatcherWatches(t *testing.T) {
	w := newWorld(t)
	client, seen := clustertest.Client(t)
	began := time.Now()
	x := startWatcher(t, &memorySink{}, client, seen, func(c *Config) { c.Now = func() time.Time { return began } }) // so that no news is late

	foreign, foreignKey := w.CreateJob("foreign", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	w.StartJob(foreign)
	j, key := w.CreateJob("pi")
	j = w.StartJob(j)
	p := w.createPod(j, key, 0)
	w.EndPod(p.Name, corev1.PodSucceeded)
	unheld := clustertest.Only[events.PodObserved](t, w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})).Pod
	w.DeletePodNow(p.Name)
	waits := w.createPod(j, key, 1) // deleted first, then its finalizer is removed
	w.DeletePodNow(waits.Name)
	let := clustertest.Only[events.PodGone](t, w.act(key, effect.RemoveFinalizer{Name: waits.Name, UID: waits.UID})).Pod
	w.DeleteJob("pi")
	w.createForeignPod()

	clustertest.Eventually(t, func() string {
		if len(of[events.JobGone](x.sink, key)) == 0 || len(of[events.PodGone](x.sink, key)) < 2 {
			return "the end of the Job and its Pods"
		}
		return ""
	})
	if jobs := of[events.JobObserved](x.sink, key); len(jobs) != 2 || jobs[0].Job.Status.StartTime != nil || jobs[1].Job.Status.StartTime == nil {
		t.Errorf("observations of the Job: %+v", jobs)
	}
	gone := of[events.JobGone](x.sink, key)[0]
	if gone.Name != "pi" || gone.Version <= events.Version(j.ResourceVersion) {
		t.Errorf("%+v", gone)
	}
	var phases []string
	for _, o := range of[events.PodObserved](x.sink, key) {
		if o.Pod.UID == p.UID {
			phases = append(phases, string(o.Pod.Phase))
			if o.Pod.Held != (o.Pod.Version < unheld.Version) {
				t.Errorf("held at the wrong time: %+v", o.Pod)
			}
		}
	}
	if strings.Join(phases, " ") != "Succeeded Succeeded" { // ended, deleted; that it was created, and its finalizer removed, the reconciler knows
		t.Errorf("phases %v", phases)
	}
	for _, o := range of[events.PodGone](x.sink, key) {
		switch o.Pod.UID {
		case p.UID:
			if o.Pod.Phase != events.Succeeded || o.Pod.Version <= unheld.Version {
				t.Errorf("%+v", o.Pod)
			}
		case waits.UID: // the API server deletes it with the finalizer still in its stored form
			if o.Pod.Serial != 1 || !o.Pod.Held || let.Held || o.Pod.Version <= let.Version {
				t.Errorf("the watch shows %+v, the answer %+v", o.Pod, let)
			}
		default:
			t.Errorf("whose is %+v", o.Pod)
		}
	}
	if facts := x.sink.about(foreignKey); len(facts) != 0 {
		t.Errorf("facts about a Job that is not ours: %+v", facts)
	}
	x.sink.set(func() {
		for _, f := range x.sink.facts {
			if f.Key.Function != "job" || f.Cluster != "c" || f.Key.UID == "" {
				t.Errorf("%+v", f)
			}
		}
	})
}

// TestWatcherLeavesOut: what the reconciler did itself is no fact, until it takes longer than it should.
func TestWatcherLeavesOut(t *testing.T) {
	w := newWorld(t)
	client, seen := clustertest.Client(t)
	began := time.Now()
	clock := func(ahead time.Duration) func(*Config) {
		return func(c *Config) { c.Now = func() time.Time { return began.Add(ahead) } }
	}
	late, x := startWatcher(t, &memorySink{}, client, seen, clock(time.Hour)), startWatcher(t, &memorySink{}, client, seen, clock(0))
	j, key := w.CreateJob("pi")
	p := w.createPod(j, key, 0)
	late.sees(t, key, w.LivePod(p.Name))
	w.BindPod(p.Name)
	running := w.EndPod(p.Name, corev1.PodRunning)
	ended := w.EndPod(p.Name, corev1.PodSucceeded)
	w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
	w.DeletePodNow(p.Name)
	x.misses(t, key, running)
	var versions []uint64
	for _, o := range of[events.PodObserved](x.sink, key) {
		versions = append(versions, o.Pod.Version)
	}
	want := []uint64{events.Version(running.ResourceVersion), events.Version(ended.ResourceVersion)}
	if !slices.Equal(versions[:min(2, len(versions))], want) || len(versions) > 3 { // a deletion may have an observation of its own
		t.Errorf("published are the versions %v, want %v first", versions, want)
	}
}

// TestWatcherAndLostLabels: a Pod that leaves the selection has not left the cluster.
func TestWatcherAndLostLabels(t *testing.T) {
	w := newWorld(t)
	client, seen := clustertest.Client(t)
	x := startWatcher(t, &memorySink{}, client, seen)
	j, key := w.CreateJob("pi")
	pod := func(serial int) *corev1.Pod { return w.LivePod(w.createPod(j, key, serial).Name) }
	warned := func() bool { return strings.Contains(x.log.String(), "was taken from a Pod") }

	t.Run("one that a user has taken all labels from is shown to its owner", func(t *testing.T) {
		bare := w.EditPod(pod(0).Name, func(p *corev1.Pod) { p.Labels = nil })
		if p := x.sees(t, key, bare); p.Labels == nil || p.Orphan || !p.Held {
			t.Errorf("saw %+v", p)
		}
	})
	t.Run("one that we have released is gone", func(t *testing.T) {
		p := pod(1)
		p = w.EditPod(p.Name, func(p *corev1.Pod) { p.Labels[batchv1.ControllerUidLabel] = "another" })
		if p := x.sees(t, key, p); p.Labels == nil {
			t.Errorf("saw %+v", p)
		}
		w.act(key, effect.ReleasePod{Name: p.Name, UID: p.UID})
		x.misses(t, key, p)
	})
	t.Run("one that gets our label back is shown again", func(t *testing.T) {
		p := pod(2)
		w.EditPod(p.Name, func(p *corev1.Pod) { p.Labels = nil })
		w.EditPod(p.Name, func(now *corev1.Pod) { now.Labels = p.Labels })
		x.sees(t, key, w.EndPod(p.Name, corev1.PodRunning))
	})
	if gone := of[events.PodGone](x.sink, key); len(gone) != 1 || warned() {
		t.Errorf("gone are %+v, log:\n%s", gone, x.log.String())
	}
	t.Run("a Pod that lost only the managed label is a user's mistake", func(t *testing.T) {
		p := w.EditPod(pod(3).Name, func(p *corev1.Pod) { delete(p.Labels, v1alpha1.ManagedLabel) })
		x.sees(t, key, p)
		if gone := of[events.PodGone](x.sink, key); len(gone) != 1 || !warned() {
			t.Errorf("gone are %+v, log:\n%s", gone, x.log.String())
		}
	})
}

// createForeignPod creates a Pod that carries the managed label and has no owner.
func (w *world) createForeignPod() {
	w.Helper()
	_, err := w.CoreV1().Pods(w.NS).Create(w.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "unowned", Labels: map[string]string{v1alpha1.ManagedLabel: "true"}},
		Spec:       clustertest.Job("x").Spec.Template.Spec,
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func TestNewWatcherRefuses(t *testing.T) {
	client := kubernetes.New(nil)
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Cluster: "c", Sink: &memorySink{}}, "no client"},
		{Config{Cluster: "c", Client: client}, "no sink"},
		{Config{Client: client, Sink: &memorySink{}}, "no name"},
		{Config{Cluster: "c", Client: client, Sink: &memorySink{}, Interval: -1}, "negative"},
	} {
		if _, err := New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}
