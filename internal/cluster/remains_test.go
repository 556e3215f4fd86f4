package cluster_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
)

func (w *world) leaving(change ...func(*cluster.Leaving)) cluster.Leaving {
	l := cluster.Leaving{Client: w.Interface, ScheduledJobs: w.Admin, Claim: events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}}
	for _, f := range change {
		f(&l)
	}
	return l
}

// remains returns those of the world's namespace.
func (w *world) remains(l cluster.Leaving) (r cluster.Remains) {
	w.Helper()
	all, err := l.Remains(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, s := range all.ScheduledJobs {
		if s.Namespace == w.NS {
			r.ScheduledJobs = append(r.ScheduledJobs, s)
		}
	}
	for _, j := range all.Jobs {
		if j.Namespace == w.NS {
			r.Jobs = append(r.Jobs, j)
		}
	}
	for _, p := range all.Pods {
		if p.Namespace == w.NS {
			r.Pods = append(r.Pods, p)
		}
	}
	return r
}

// What remains of Jobs: jobstream's unfinished ones, with the Pods that carry the finalizer, and no other controller's.
func TestRemainsOfJobs(t *testing.T) {
	w := newWorld(t)
	running, _ := w.CreateJob("running")
	w.StartJob(running)
	w.MakePod(running, 0)
	p := w.MakePod(running, 1)
	w.EditPod(p.Name, func(p *corev1.Pod) { p.Finalizers = nil })
	w.CreateJob("paused", func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
	w.CreateJob("theirs", func(j *batchv1.Job) { j.Spec.ManagedBy = new("example.com/other") })
	w.CreateJob("unmanaged", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	done, _ := w.CreateJob("done")
	held := w.MakePod(done, 0)
	w.Finish(w.StartJob(done))

	r := w.remains(w.leaving())
	var names []string
	for _, j := range r.Jobs {
		names = append(names, fmt.Sprintf("%s suspended=%v unmanaged=%v held=%d", j.Name, j.Suspended, j.Unmanaged, j.HeldPods))
	}
	if want := []string{"paused suspended=true unmanaged=false held=0", "running suspended=false unmanaged=false held=1"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	if len(r.Pods) != 1 || r.Pods[0].Name != held.Name {
		t.Errorf("the Pod of the finished Job is held still: %+v", r.Pods)
	}
	claiming := w.remains(w.leaving(func(l *cluster.Leaving) { l.Claim.Unmanaged = true }))
	if n := slices.IndexFunc(claiming.Jobs, func(j cluster.RemainingJob) bool { return j.Name == "unmanaged" }); n < 0 || !claiming.Jobs[n].Unmanaged || len(claiming.Jobs) != 3 {
		t.Errorf("with --claim-unmanaged: %+v", claiming.Jobs)
	}
}

// More Jobs than one page holds are all counted.
func TestRemainsOfManyJobs(t *testing.T) {
	w := newWorld(t)
	const jobs = cluster.PageSize + 10
	for n := range jobs {
		w.CreateJob(fmt.Sprintf("j-%d", n), func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
	}
	if r := w.remains(w.leaving()); len(r.Jobs) != jobs {
		t.Errorf("%d Jobs, want %d", len(r.Jobs), jobs)
	}
	err := w.BatchV1().Jobs(w.NS).DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
	if err != nil { // other programs list them, too
		t.Error(err)
	}
}

// A ScheduledJob remains until it is suspended and a reconciler has observed that, or until it has nothing more to do.
func TestRemainsOfScheduledJobs(t *testing.T) {
	w := newWorld(t)
	w.CreateSchedule("hourly")
	w.CreateSchedule("paused", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
	w.CreateSchedule("noticed", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
	w.SettleSchedule("noticed", func(s *v1alpha1.ScheduledJobStatus) { s.ObservedGeneration = 1 })
	w.CreateSchedule("over")
	w.SettleSchedule("over", func(s *v1alpha1.ScheduledJobStatus) {
		s.ObservedGeneration = 1
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.FinishedCondition, Status: metav1.ConditionTrue, Reason: "Done"})
	})
	states := func() map[string]bool {
		m := map[string]bool{}
		for _, s := range w.remains(w.leaving()).ScheduledJobs {
			m[s.Name] = s.Suspended
		}
		return m
	}
	if got, want := states(), map[string]bool{"hourly": false, "paused": true}; !maps.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}

	l := w.leaving()
	for _, s := range w.remains(l).ScheduledJobs {
		if s.Suspended {
			continue
		}
		stranger := s
		stranger.UID = types.UID("another")
		if err := l.Suspend(t.Context(), stranger); !apierrors.IsInvalid(err) {
			t.Errorf("a namesake was suspended: %v", err)
		}
		if live := w.LiveSchedule(s.Name); *live.Spec.Suspend || len(live.Labels) != 0 {
			t.Errorf("a namesake was changed: %+v", live)
		}
		if err := l.Suspend(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	if live := w.LiveSchedule("hourly"); !*live.Spec.Suspend || live.Labels[v1alpha1.SuspendedByLabel] != v1alpha1.SuspendedByDrain || live.Spec.Schedule != "0 * * * *" {
		t.Errorf("%+v", live)
	}
	if live := w.LiveSchedule("paused"); live.Labels[v1alpha1.SuspendedByLabel] != "" {
		t.Error("one that its user has suspended carries the label of Suspend")
	}
	if got, want := states(), map[string]bool{"hourly": true, "paused": true}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
