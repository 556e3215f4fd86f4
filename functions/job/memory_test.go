package job_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/pod"
)

// The state of a Job is one message on the bus: at most 8 MB, enough for 20,000 Pods. Transcripts: *survives_loss*.

// TestLabelsAreForgottenOnceTheyAreJudged: the selector never changes, and every observation has the labels anew. Pods whose
// labels do not match are marked, since they have to be released.
func TestLabelsAreForgottenOnceTheyAreJudged(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := events.Job{Name: "pi", UID: "job", Version: 1, Parallelism: 2, Completions: new(int32(2)), BackoffLimit: 6,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "batch"}}, Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: now}}}
	pod := func(serial int, app string) events.Pod {
		return events.Pod{Name: pod.Name("pi", "job", serial, events.NoIndex), UID: types.UID(fmt.Sprintf("%d-%s", serial, app)), Version: 10, Serial: serial,
			Index: events.NoIndex, Phase: events.Running, Held: true, Labels: map[string]string{"app": app, "helm.sh/chart": "training-1.2.3"}}
	}
	f := job.New(job.DefaultLimits())
	s, effects := f.Decide(job.State{}, []events.Event{events.TimerFired{}}, now)
	ask := effects[0].(effect.TakeInventory)
	s, _ = f.Decide(s, []events.Event{
		events.JobListed{ID: ask.ID, Job: &j, JobsVersion: 2, Version: 20, Pods: []events.Pod{pod(0, "batch"), pod(events.NoSerial, "batch"), pod(events.NoSerial, "web")}},
	}, now)
	seen := pod(0, "batch")
	seen.Version = 30
	s, _ = f.Decide(s, []events.Event{events.PodObserved{Pod: seen}}, now)
	if _, effects = f.Decide(s, nil, now); !slices.ContainsFunc(effects, func(e effect.Effect) bool {
		return e == effect.ReleasePod{Name: pod(events.NoSerial, "web").Name, UID: "-1-web"}
	}) {
		t.Errorf("wants %v", effects)
	}
	if len(s.Pods) != 1 || s.Pods[0].Pod.Labels != nil {
		t.Errorf("Pods %v", s.Pods)
	}
	if len(s.Unplaced) != 2 || s.Unplaced["-1-batch"].Pod.Labels != nil || len(s.Unplaced["-1-web"].Pod.Labels) != 1 || s.Unplaced["-1-web"].Pod.Labels["app"] != "" {
		t.Errorf("found %v", s.Unplaced)
	}
}

// TestWhatAStateWeighs prints the size of a state. The bounds of a state (bus.DefaultStateBytes) and of its Pods follow from it.
func TestWhatAStateWeighs(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	weigh := func(pods int) int {
		j := events.Job{Namespace: "a-namespace", Name: "a-job-of-a-usual-name", UID: "5ef034e0-1890-11e6-8935-42010af0003e", Version: 123456789, Parallelism: int32(pods), //nolint:gosec // 20,000
			Completions: new(int32(100_000)), BackoffLimit: 6, Created: now, Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: now}}}
		list := events.JobListed{Job: &j, JobsVersion: 123456789, Version: 123456789}
		for i := range pods {
			list.Pods = append(list.Pods, events.Pod{Name: pod.Name(j.Name, j.UID, i, events.NoIndex), UID: types.UID(fmt.Sprintf("0b7e5d0a-5c1c-4d0e-8f6f-%012d", i)),
				Version: uint64(100_000_000 + i), Owner: j.Name, Serial: i, Index: events.NoIndex, Phase: events.Running, Held: true, Ready: true, Scheduled: true, Created: now, ReadySince: now})
		}
		f := fn.Register(job.New(job.DefaultLimits()))
		d, err := f.Decide(nil, []events.Event{events.TimerFired{}}, now)
		if err != nil {
			t.Fatal(err)
		}
		list.ID = d.Effects[0].(effect.TakeInventory).ID
		if d, err = f.Decide(d.State, []events.Event{list}, now); err != nil {
			t.Fatal(err)
		}
		return len(d.State)
	}
	small, large := weigh(1), weigh(20_000)
	t.Logf("the state of a Job weighs %d bytes with one Pod and %d with 20,000: %d for each", small, large, large/20_000)
	if small > 1500 || large > 8_000_000 {
		t.Error("that is more than the bounds are made for")
	}
}

// TestAFinishedJobIsRememberedForItsTimeToLive, whether an observation or an unrequested snapshot shows it; and only if this
// function has to delete it, since an inventory costs a list of the whole cluster.
func TestAFinishedJobIsRememberedForItsTimeToLive(t *testing.T) {
	finished := func(ttl *int32) events.Job {
		return events.Job{Name: "pi", UID: "job", Version: 1, Completions: new(int32(1)), TTLSecondsAfterFinished: ttl,
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}}}
	}
	for _, ours := range []bool{true, false} {
		for _, ttl := range []*int32{new(int32(60)), nil} {
			j, l := finished(ttl), job.DefaultLimits()
			l.DeleteExpired = ours
			for _, e := range []events.Event{events.JobObserved{Job: j}, events.JobListed{ID: "relist", Job: &j, JobsVersion: 5, Version: 5}} {
				_, effects := job.New(l).Decide(job.State{}, []events.Event{e}, time.Unix(0, 0))
				if asks, want := len(effects) == 1, ours && ttl != nil; asks != want {
					t.Errorf("%s, ours to delete %v, with a time to live %v: %v", e.Type(), ours, ttl != nil, effects)
				}
			}
		}
	}
}

// TestPodsThatWaitForASuccessorDoNotWedgeTheJob: with backoffLimitPerIndex the last failed Pod of an index is kept until its
// successor carries its number on. When 20,000 of them fill the state, the successor can be created all the same; new indexes
// wait, and a condition of the Job reports why.
func TestPodsThatWaitForASuccessorDoNotWedgeTheJob(t *testing.T) {
	const full = 20_000
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
		j.Indexed, j.Parallelism, j.Completions, j.BackoffLimit = true, 3, new(int32(full+100)), 1<<31-1
		j.BackoffLimitPerIndex, j.Status.FailedIndexes = new(int32(3)), new("")
	})
	for i := range full {
		w.with(pod.Name("pi", w.uid, i, i), func(p *events.Pod) { // under another name each would have to be adopted, 500 in a turn
			p.Serial, p.Index, p.Phase, p.Finished = i, i, events.Failed, w.now.Add(-time.Hour)
		})
	}
	w.status(func(s *batchv1.JobStatus) { s.Ready, s.Terminating = new(int32(0)), new(int32(0)) })
	w.wake()
	w.wait(2 * time.Second)
	made := map[int]int32{}
	for _, p := range w.pods() {
		if p.Phase == events.Pending {
			made[p.Index] = p.IndexFailures
		}
	}
	if len(made) != 3 || made[0]+made[1]+made[2] != 3 {
		t.Errorf("made %v: want the indexes 0 to 2, each of which has failed once", made)
	}
	if s := w.job().Status; s.Failed != 3 {
		t.Errorf("%d are counted, 3 have handed their number on", s.Failed)
	}
	c, _ := w.job().Condition(v1alpha1.RefusedCondition)
	if c.Reason != "TooManyPods" {
		t.Errorf("the condition has reason %q", c.Reason)
	}
}

// TestTooManyStrangersArePassedOver until there is room: a Job whose selector matches 25,000 Pods keeps 20,000 in its state,
// reports it in a condition, creates no Pod and does not finish meanwhile; and takes inventory again when a tenth of them have
// settled.
func TestTooManyStrangersArePassedOver(t *testing.T) {
	const full, all = 20_000, 25_000
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	j := events.Job{Name: "pi", UID: "job", Version: 1, Parallelism: 1, Completions: new(int32(0)), BackoffLimit: 6,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "batch"}}, Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: now}}}
	var pods []events.Pod
	for i := range all {
		pods = append(pods, events.Pod{Name: fmt.Sprintf("stranger-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Version: 10, Serial: events.NoSerial,
			Index: events.NoIndex, Phase: events.Running, Orphan: true, Labels: map[string]string{"app": "batch"}})
	}
	f := job.New(job.DefaultLimits())
	s, effects := f.Decide(job.State{}, []events.Event{events.TimerFired{}}, now)
	ask := effects[0].(effect.TakeInventory)
	s, effects = f.Decide(s, []events.Event{events.JobListed{ID: ask.ID, Job: &j, JobsVersion: 2, Version: 20, Pods: pods}}, now)
	if len(s.Unplaced) != full || !s.Crowded {
		t.Fatalf("%d are kept in mind, crowded %v", len(s.Unplaced), s.Crowded)
	}
	var written []batchv1.JobCondition
	for _, e := range effects {
		switch e := e.(type) {
		case effect.WriteJobStatus:
			written = e.Status.Conditions
		case effect.CreatePod, effect.TakeInventory:
			t.Errorf("wants %v", e)
		}
	}
	if len(written) != 2 || written[1].Type != v1alpha1.RefusedCondition && written[0].Type != v1alpha1.RefusedCondition {
		t.Errorf("the Job has the conditions %v", written)
	}
	var gone []events.Event
	for _, p := range pods[:full/10-1] {
		gone = append(gone, events.PodGone{Pod: p})
	}
	if s, _ = f.Decide(s, gone, now); !s.Known || len(s.Unplaced) != full-len(gone) {
		t.Errorf("%d are kept in mind, known %v", len(s.Unplaced), s.Known)
	}
	s, effects = f.Decide(s, []events.Event{events.PodGone{Pod: pods[full/10]}}, now)
	if _, asks := effects[0].(effect.TakeInventory); !asks || s.Known {
		t.Errorf("wants %v", effects)
	}
}
