package job

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// TestWhatTheEndOfAPodCountsAs: the status decides where it lists the Pod or its index. Only of a Pod that is still held may the Pod alone
// decide: another may have been announced long ago.
func TestWhatTheEndOfAPodCountsAs(t *testing.T) {
	ignore := &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}}}}
	ended := func(phase events.PodPhase) func(*Row) {
		return func(r *Row) { r.Pod.Phase, r.Pod.Exits = phase, []events.Exit{{Container: "main", Code: 42}} }
	}
	and := func(a, b func(*Row)) func(*Row) { return func(r *Row) { a(r); b(r) } }
	indexed := func(s *State) {
		s.Job.Indexed, s.Job.Completions, s.Job.Status.CompletedIndexes = true, new(int32(3)), "1"
	}
	policy := func(s *State) { s.Job.PodFailurePolicy = ignore }
	for _, c := range []struct {
		name   string
		row    func(*Row)
		job    func(*State)
		listed bool
		want   events.PodResult
	}{
		{"it runs", asItIs, policy, false, ""},
		{"it runs, and another controller has listed it", asItIs, policy, true, ""},
		{"listed", ended(events.Failed), func(*State) {}, true, events.PodFailed},
		{"listed, and no longer held", and(ended(events.Failed), func(r *Row) { r.Pod.Held = false }), func(*State) {}, true, events.PodFailed},
		{"ended, and not listed yet", ended(events.Failed), func(*State) {}, false, ""},
		{"ignored", ended(events.Failed), policy, false, events.PodIgnored},
		{"ignored, and no longer held", and(ended(events.Failed), func(r *Row) { r.Pod.Held = false }), policy, false, ""},
		{"ignored, and not the Job's any more", and(ended(events.Failed), func(r *Row) { r.Pod.Orphan = true }), policy, false, ""},
		{"known before", and(ended(events.Failed), func(r *Row) { r.Result = events.PodFailed }), policy, false, events.PodFailed},
		{"a success of a recorded index", and(ended(events.Succeeded), func(r *Row) { r.Pod.Index = 1 }), indexed, false, events.PodSucceeded},
		{"a success of another index", and(ended(events.Succeeded), func(r *Row) { r.Pod.Index = 2 }), indexed, false, ""},
		{"a success of an index beyond the completions", and(ended(events.Failed), func(r *Row) { r.Pod.Index = 7 }), func(s *State) { indexed(s); policy(s) }, false, ""},
	} {
		s := tracked(c.row)
		s.limits.AnnouncePods = true
		if c.job(&s); c.listed {
			s.Job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"p"}}
		}
		if s.accountFor(); s.Pods[2].Result != c.want {
			t.Errorf("%s: %q, want %q", c.name, s.Pods[2].Result, c.want)
		}
	}
}

// Snapshots leave out how a Pod has ended: it is taken from the observation before, of the same Pod.
func TestTheEndOutlivesASnapshot(t *testing.T) {
	end := &events.PodEnd{Node: "n"}
	for _, c := range []struct {
		name     string
		announce bool
		p, old   events.Pod
		want     bool
	}{
		{"of a snapshot", true, events.Pod{UID: "p"}, events.Pod{UID: "p", End: end}, true},
		{"of a watch", true, events.Pod{UID: "p", End: end}, events.Pod{UID: "p"}, true},
		{"another Pod's", true, events.Pod{UID: "q"}, events.Pod{UID: "p", End: end}, false},
		{"not announced", false, events.Pod{UID: "p", End: end}, events.Pod{UID: "p", End: end}, false},
	} {
		s := State{limits: DefaultLimits()}
		s.limits.AnnouncePods = c.announce
		if got := s.withEnd(c.p, c.old); (got.End != nil) != c.want {
			t.Errorf("%s: %+v", c.name, got.End)
		}
	}
}

// TestCleanUpOfAFinishedJob: no Pod stays held, and none of the Job's own runs on.
func TestCleanUpOfAFinishedJob(t *testing.T) {
	for _, c := range []struct {
		name string
		row  func(*Row)
		want string
	}{
		{"it runs", asItIs, "DeletePod pi"},
		{"it has ended", func(r *Row) { r.Pod.Phase = events.Succeeded }, "RemoveFinalizer pi"},
		{"it runs, and is not the Job's any more", func(r *Row) { r.Pod.Orphan = true }, "RemoveFinalizer pi"},
		{"it runs, and is not held", func(r *Row) { r.Pod.Held = false }, "DeletePod pi"},
		{"it is being deleted, and not held", func(r *Row) { r.Pod.Held, r.Pod.Deleting = false, true }, ""},
		{"it runs, not held and not the Job's", func(r *Row) { r.Pod.Held, r.Pod.Orphan = false, true }, ""},
		{"it has ended, and is not held", func(r *Row) { r.Pod.Held, r.Pod.Phase = false, events.Failed }, ""},
	} {
		s, out := cleanUp(tracked(c.row))
		got := ""
		for _, e := range out {
			got += e.Kind() + " pi"
		}
		if got != c.want || (len(s.Pods) == 0) != (c.want == "") {
			t.Errorf("%s: %v, rows %v", c.name, out, s.Pods)
		}
	}
}

// A Job whose state is too large shows that once, unless there is nothing to show or the API server would not take it.
func TestStandStill(t *testing.T) {
	done := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	for _, c := range []struct {
		name   string
		job    events.Job
		gone   bool
		writes int
	}{
		{"it runs", events.Job{Version: 1}, false, 1},
		{"it has not been observed", events.Job{}, false, 0},
		{"it is another controller's", events.Job{Version: 1, Foreign: true}, false, 0},
		{"it is being deleted", events.Job{Version: 1, Deleting: true}, false, 0},
		{"it has finished", events.Job{Version: 1, Status: done}, false, 0},
		{"it is gone", events.Job{Version: 1}, true, 0},
	} {
		s := State{Job: c.job, Gone: c.gone, Pacing: Pacing{Overgrown: Overgrown{Count: 1, Until: noon.Add(time.Hour), Message: "9 MB"}}}
		var at effect.Wake
		if out := standStill(s, noon, &at); len(out) != c.writes {
			t.Errorf("%s: %v", c.name, out)
		}
	}
}

// A Job does not end while a Pod of it is active, intended, terminating, held or unsure, or waits to be counted.
func TestConcludeWaitsForAllPods(t *testing.T) {
	met := outcome{batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "all"}
	for _, c := range []struct {
		name    string
		count   count
		listed  []types.UID
		crowded bool
		ends    bool
	}{
		{"nothing is left", count{}, nil, false, true},
		{"active", count{active: 1}, nil, false, false},
		{"intended", count{intended: 1}, nil, false, false},
		{"one active, one intended", count{active: 1, intended: 1}, nil, false, false},
		{"one active, one intended, one terminating", count{active: 1, intended: 1, terminating: 1}, nil, false, false},
		{"intended and terminating", count{intended: 1, terminating: 1}, nil, false, false},
		{"held", count{held: 1}, nil, false, false},
		{"unsure", count{unsure: 1}, nil, false, false},
		{"held and unsure", count{held: 1, unsure: 1}, nil, false, false},
		{"listed", count{}, []types.UID{"a"}, false, false},
		{"held, unsure and listed", count{held: 1, unsure: 1}, []types.UID{"a", "b"}, false, false},
		{"too many Pods to know all", count{}, nil, true, false},
	} {
		for _, failed := range []bool{false, true} {
			st := batchv1.JobStatus{UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{Succeeded: c.listed}}
			if failed {
				st.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: c.listed}
			}
			conclude(&st, State{Table: Table{Crowded: c.crowded}}, c.count, met, noon)
			ends := slices.ContainsFunc(st.Conditions, func(k batchv1.JobCondition) bool { return k.Type == batchv1.JobComplete })
			if ends != c.ends || (st.CompletionTime != nil) != c.ends {
				t.Errorf("%s: %+v", c.name, st.Conditions)
			}
		}
	}
	late := batchv1.JobStatus{StartTime: &metav1.Time{Time: noon.Add(time.Minute)}, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	if conclude(&late, State{}, count{}, met, noon); !late.CompletionTime.Equal(late.StartTime) {
		t.Errorf("started by a clock that was ahead: %s to %s", late.StartTime, late.CompletionTime)
	}
}

// The write with the start of a Job waits for Pods that are being created, for a bounded number of them, and not while they are refused.
func TestStarting(t *testing.T) {
	creates := []effect.Effect{effect.FindPod{}, effect.CreatePod{}}
	for _, c := range []struct {
		name    string
		started bool
		allowed int
		active  int32
		plan    []effect.Effect
		want    bool
	}{
		{"the first are created", false, 0, 0, creates, true},
		{"more are created", false, 0, 499, creates, true},
		{"as many as one plan creates exist", false, 0, 500, creates, false},
		{"none is created", false, 0, 3, creates[:1], false},
		{"they are refused", false, 1, 0, creates, false},
		{"the Job has started", true, 0, 0, creates, false},
	} {
		s := State{limits: DefaultLimits(), Pacing: Pacing{Allowed: c.allowed}}
		if c.started {
			s.Job.Status.StartTime = &metav1.Time{Time: noon}
		}
		if got := s.starting(count{active: c.active}, c.plan); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
