package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

func (w *world) leaving(change ...func(*Leaving)) Leaving {
	l := Leaving{Client: w.Interface, ScheduledJobs: w.schedules, Claim: events.Claim{ManagedBy: v1alpha1.DefaultManagedBy}}
	for _, f := range change {
		f(&l)
	}
	return l
}

// remains are those of the world's namespace.
func (w *world) remains(l Leaving) (r Remains) {
	w.Helper()
	all, err := l.Remains(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, s := range all.ScheduledJobs {
		if s.Namespace == w.ns {
			r.ScheduledJobs = append(r.ScheduledJobs, s)
		}
	}
	for _, j := range all.Jobs {
		if j.Namespace == w.ns {
			r.Jobs = append(r.Jobs, j)
		}
	}
	for _, p := range all.Pods {
		if p.Namespace == w.ns {
			r.Pods = append(r.Pods, p)
		}
	}
	return r
}

// What remains of Jobs: ours that have not finished, with what they hold, and nobody else's.
func TestRemainsOfJobs(t *testing.T) {
	w := newWorld(t)
	running, key := w.createJob("running")
	w.startJob(running)
	w.createPod(running, key, 0)
	p := w.createPod(running, key, 1)
	w.act(key, effect.RemoveFinalizer{Name: p.Name, UID: p.UID})
	w.createJob("paused", func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
	w.createJob("theirs", func(j *batchv1.Job) { j.Spec.ManagedBy = new("example.com/other") })
	w.createJob("nobodys", func(j *batchv1.Job) { j.Spec.ManagedBy = nil })
	done, doneKey := w.createJob("done")
	held := w.createPod(done, doneKey, 0)
	w.finish(w.startJob(done))

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
	claiming := w.remains(w.leaving(func(l *Leaving) { l.Claim.Unmanaged = true }))
	if n := slices.IndexFunc(claiming.Jobs, func(j RemainingJob) bool { return j.Name == "nobodys" }); n < 0 || !claiming.Jobs[n].Unmanaged || len(claiming.Jobs) != 3 {
		t.Errorf("with --claim-unmanaged: %+v", claiming.Jobs)
	}
}

// More Jobs than one page holds are all counted.
func TestRemainsOfManyJobs(t *testing.T) {
	w := newWorld(t)
	const jobs = pageSize + 10
	for n := range jobs {
		w.createJob(fmt.Sprintf("j-%d", n), func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
	}
	if r := w.remains(w.leaving()); len(r.Jobs) != jobs {
		t.Errorf("%d Jobs, want %d", len(r.Jobs), jobs)
	}
	err := w.BatchV1().Jobs(w.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{})
	if err != nil { // others list them, too
		t.Error(err)
	}
}

// A ScheduledJob remains until it is suspended, and a reconciler has taken notice, or it has done what it was for.
func TestRemainsOfScheduledJobs(t *testing.T) {
	w := newWorld(t)
	w.createSchedule("hourly")
	w.createSchedule("paused", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
	w.createSchedule("noticed", func(j *v1alpha1.ScheduledJob) { j.Spec.Suspend = new(true) })
	w.settleSchedule("noticed", func(s *v1alpha1.ScheduledJobStatus) { s.ObservedGeneration = 1 })
	w.createSchedule("over")
	w.settleSchedule("over", func(s *v1alpha1.ScheduledJobStatus) {
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
		if live := w.liveSchedule(s.Name); *live.Spec.Suspend || len(live.Labels) != 0 {
			t.Errorf("a namesake was changed: %+v", live)
		}
		if err := l.Suspend(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	if live := w.liveSchedule("hourly"); !*live.Spec.Suspend || live.Labels[v1alpha1.SuspendedByLabel] != v1alpha1.SuspendedByDrain || live.Spec.Schedule != "0 * * * *" {
		t.Errorf("%+v", live)
	}
	if live := w.liveSchedule("paused"); live.Labels[v1alpha1.SuspendedByLabel] != "" {
		t.Error("one that its user has suspended says that we have")
	}
	if got, want := states(), map[string]bool{"hourly": true, "paused": true}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
