package job_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// Snapshots that list failed Pods which were counted before: before the limit was set, or before a loss of the state.

// TestALimitThatIsSetLaterReachesPodsThatFailedBefore, with the next snapshot. A snapshot that is older than the state restores
// nothing.
func TestALimitThatIsSetLaterReachesPodsThatFailedBefore(t *testing.T) {
	limit := func(n *int) func(*events.Job) { return func(j *events.Job) { j.Options.FailedPodsLimit = n } }
	for _, c := range []struct {
		name string
		news func(*world, events.JobListed) // since the Job is limited and was listed
		want int
	}{
		{"the snapshot comes", func(w *world, list events.JobListed) { w.receive(list) }, 1},
		{"the snapshot comes twice", func(w *world, list events.JobListed) { w.receive(list); w.receive(list) }, 1},
		{"both have gone, and a newer snapshot has said so", func(w *world, list events.JobListed) {
			newer := list
			newer.Pods, newer.Version = list.Pods[2:], list.Version+1000
			w.receive(newer, list)
		}, 0},
		{"one has gone since", func(w *world, list events.JobListed) {
			gone := list.Pods[0]
			gone.Version = list.Version + 1
			w.receive(list, events.PodGone{Pod: gone})
		}, 0},
		{"one had gone before that was known", func(w *world, list events.JobListed) {
			gone := list.Pods[0]
			gone.Version = list.Version + 1
			w.receive(events.PodGone{Pod: gone}, list)
		}, 0},
		{"the limit is gone again", func(w *world, list events.JobListed) {
			w.api.UpdateJob(w.uid, limit(nil))
			w.settle()
			w.receive(list)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
			for i, name := range []string{"a", "b"} {
				w.with(name, func(p *events.Pod) {
					p.Serial, p.Phase, p.Held, p.Finished = i, events.Failed, false, w.now.Add(-time.Hour)
				})
			}
			w.with("c", func(p *events.Pod) { p.Serial = 2 })
			w.status(func(s *batchv1.JobStatus) { s.Failed = 2 })
			w.wake()
			w.api.UpdateJob(w.uid, limit(new(1)))
			w.settle()
			c.news(w, w.api.List("relist", w.uid))
			if n := count[effect.DeletePod](w); n != c.want {
				t.Errorf("wanted %v", w.done)
			}
		})
	}
}

// TestASnapshotDoesNotBringBackWhatWasForgotten: a Pod is deleted, or its user takes it out of the Job, and that is observed
// before the snapshot that still lists it. It is not deleted again, and no other Pod is deleted for it.
func TestASnapshotDoesNotBringBackWhatWasForgotten(t *testing.T) {
	gone := func(p events.Pod) events.Event { return events.PodGone{Pod: p} }
	seen := func(change func(*events.Pod)) func(events.Pod) events.Event {
		return func(p events.Pod) events.Event { change(&p); return events.PodObserved{Pod: p} }
	}
	for _, c := range []struct {
		name    string
		limited bool // from the beginning
		news    func(events.Pod) events.Event
	}{
		{"it has gone before there was a limit", false, gone},
		{"it goes before there is a limit", false, seen(func(p *events.Pod) { p.Deleting = true })},
		{"it has other labels", true, seen(func(p *events.Pod) { p.Labels = map[string]string{"debug": "me"} })},
		{"it has no owner", true, seen(func(p *events.Pod) { p.Orphan, p.Labels = true, map[string]string{"debug": "me"} })},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
				if c.limited {
					j.Options.FailedPodsLimit = new(2)
				}
			})
			for i, name := range []string{"a", "b"} {
				w.with(name, func(p *events.Pod) {
					p.Serial, p.Phase, p.Held, p.Finished = i, events.Failed, false, w.now.Add(time.Duration(i-60)*time.Minute)
				})
			}
			w.with("c", func(p *events.Pod) { p.Serial = 2 })
			w.status(func(s *batchv1.JobStatus) { s.Failed = 2 })
			w.wake()
			w.receive(w.api.List("before", w.uid))
			w.api.UpdateJob(w.uid, func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
			w.inbox = nil // the watch of Jobs is behind
			snapshot := w.api.List("relist", w.uid)
			a := snapshot.Pods[0]
			if a.Name != "a" {
				t.Fatalf("listed %v", snapshot.Pods)
			}
			a.Version = snapshot.Version + 1
			w.receive(c.news(a))
			w.receive(snapshot)
			if n := count[effect.DeletePod](w); n > 0 {
				t.Errorf("wanted %v", w.done)
			}
		})
	}
}

// TestASnapshotOfBeforeTheLimitKeepsWhatIsKept: its Job was read before a user limited how many stay, and so it lists no failed
// Pod that was counted.
func TestASnapshotOfBeforeTheLimitKeepsWhatIsKept(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(*events.Job) {})
	w.with("b", func(p *events.Pod) { p.Serial = 1 })
	w.wake()
	snapshot := w.api.List("relist", w.uid)
	w.api.UpdateJob(w.uid, func(j *events.Job) { j.Options.FailedPodsLimit = new(1) })
	w.settle()
	a := w.with("a", func(p *events.Pod) {
		p.Serial, p.Phase, p.Held, p.Finished = 0, events.Failed, false, w.now.Add(-time.Hour)
	})
	w.receive(events.PodObserved{Pod: a})
	snapshot.Version = a.Version
	w.receive(snapshot)
	snapshot.Job, snapshot.JobsVersion = nil, 0 // nor does one of before the Job, which lists those that are held
	w.receive(snapshot)
	w.ends("b", events.Failed)
	w.wait(5 * time.Second)
	if n := count[effect.DeletePod](w); n != 1 {
		t.Errorf("wanted %v", w.done)
	}
}

// TestAFinishedJobIsCleanedUpAfterItsStateIsLost: only the snapshot shows that there are too many failed Pods.
func TestAFinishedJobIsCleanedUpAfterItsStateIsLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*events.Pod)
		want   int
	}{
		{"too many", func(*events.Pod) {}, 1},
		{"one goes already", func(p *events.Pod) { p.Deleting = true }, 0},
		{"a user has taken one out of the Job", func(p *events.Pod) { p.Orphan = true }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
				j.Options.FailedPodsLimit = new(1)
				j.Status.Failed = 2
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: "True", LastTransitionTime: metav1.Time{Time: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}}}
			})
			for i, name := range []string{"a", "b"} {
				w.with(name, func(p *events.Pod) {
					p.Serial, p.Phase, p.Held, p.Finished = i, events.Failed, false, w.now.Add(-time.Hour)
				})
			}
			list := w.api.List("relist", w.uid)
			c.change(&list.Pods[0])
			w.inbox = nil
			w.receive(list)
			if n := count[effect.DeletePod](w); n != c.want {
				t.Errorf("wanted %v", w.done)
			}
			if n := count[effect.TakeInventory](w); n != c.want {
				t.Errorf("%d inventories were taken", n)
			}
		})
	}
}
