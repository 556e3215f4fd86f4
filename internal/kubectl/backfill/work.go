package backfill

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/progress"
)

// Work is a backfill under way: nominal times in order, of which some have a Job.
//
//	waiting -> running -> complete | failed
//	        -> existed, if the Job was there before
//	had run, if the status says so
type Work struct {
	// Parallelism is how many Jobs of its times run at once, 1 or more, whoever has made them.
	Parallelism int
	// KeepGoing makes Jobs also after one has failed.
	KeepGoing bool
	// Alone makes a Job only while no other one of the ScheduledJob runs.
	Alone bool

	runs  []*run
	other map[types.UID]string // Jobs of the ScheduledJob that run and that the backfill has not made
}

type run struct {
	Run
	state state
	uid   types.UID
	since time.Time
}

type state string

const (
	waiting  state = "waiting"
	running  state = "running"
	complete state = "complete"
	failed   state = "failed"
	existed  state = "existed"
	ran      state = "had run"
)

// New is the backfill of these times. Those of which is known that a Job was made are left out, unless they shall run again.
func New(runs []Run, again bool) *Work {
	w := &Work{Parallelism: 1, other: map[types.UID]string{}}
	for _, r := range runs {
		s := waiting
		if r.Ran && !again {
			s = ran
		}
		w.runs = append(w.runs, &run{Run: r, state: s})
	}
	return w
}

// Unknown is how many Jobs are to be made of times of which is not known whether they have run.
func (w *Work) Unknown() (n int) {
	for _, r := range w.runs {
		if r.state == waiting && r.Verdict == "" {
			n++
		}
	}
	return n
}

func (w *Work) find(name string) *run {
	for _, r := range w.runs {
		if r.Job == name {
			return r
		}
	}
	return nil
}

// Saw is told a Job of the ScheduledJob as it is now, and returns a line about it, "" for none.
func (w *Work) Saw(j *batchv1.Job) string {
	end := ended(j)
	r := w.find(j.Name)
	if r == nil || r.state == existed || r.state == ran || r.uid != "" && r.uid != j.UID {
		delete(w.other, j.UID)
		if end == nil {
			w.other[j.UID] = j.Name
		}
		return ""
	}
	switch {
	case r.state == waiting:
		r.state = existed
		if end == nil {
			w.other[j.UID] = j.Name
		}
		return fmt.Sprintf("%s  job.batch/%s exists: %s", stamp(r.Nominal), r.Job, result(end))
	case r.state == running && end != nil:
		return w.end(r, end, end.LastTransitionTime.Time)
	}
	return ""
}

// Gone is told that a Job was deleted, as it was then.
func (w *Work) Gone(j *batchv1.Job) string {
	delete(w.other, j.UID)
	r := w.find(j.Name)
	if r == nil || r.state != running || r.uid != j.UID {
		return ""
	}
	if end := ended(j); end != nil {
		return w.end(r, end, end.LastTransitionTime.Time)
	}
	r.state = failed
	return fmt.Sprintf("%s  job.batch/%s failed: it was deleted before it had ended", stamp(r.Nominal), r.Job)
}

func (w *Work) end(r *run, end *batchv1.JobCondition, at time.Time) string {
	took := at.Sub(r.since).Round(time.Second)
	if r.state = complete; end.Type == batchv1.JobFailed {
		r.state = failed
		return fmt.Sprintf("%s  job.batch/%s failed in %v: %s", stamp(r.Nominal), r.Job, took, progress.Why(end.Reason, end.Message))
	}
	return fmt.Sprintf("%s  job.batch/%s complete in %v", stamp(r.Nominal), r.Job, took)
}

// Next is the time whose Job is to be made now; ok is false while there is none.
func (w *Work) Next() (next Run, ok bool) {
	if w.stopped() || len(w.others()) > 0 || w.count(running) >= w.Parallelism {
		return Run{}, false
	}
	for _, r := range w.runs {
		if r.state == waiting {
			return r.Run, true
		}
	}
	return Run{}, false
}

// Made notes that the Job was made, and returns a line about it.
func (w *Work) Made(j *batchv1.Job) string {
	r := w.find(j.Name)
	r.state, r.uid, r.since = running, j.UID, j.CreationTimestamp.Time
	return fmt.Sprintf("%s  job.batch/%s created", stamp(r.Nominal), r.Job)
}

// Follows reports whether the backfill has made the Job of that UID.
func (w *Work) Follows(uid types.UID) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.uid == uid })
}

// Over reports whether nothing is left to do, or to wait for.
func (w *Work) Over() bool {
	return w.count(running) == 0 && (w.stopped() || w.count(waiting) == 0)
}

// WaitsFor names the Jobs that keep the next one from being made, in order; none while it is the backfill's own.
func (w *Work) WaitsFor() []string {
	if w.stopped() || w.count(waiting) == 0 || w.count(running) > 0 {
		return nil
	}
	return w.others()
}

// others are the Jobs that the backfill has not made and that keep it from making the next one: all of them, where it is alone, or
// those of its own times, of an earlier backfill, where they use up the parallelism.
func (w *Work) others() []string {
	var names []string
	for _, name := range w.other {
		if w.Alone || w.find(name) != nil {
			names = append(names, name)
		}
	}
	if !w.Alone && w.count(running)+len(names) < w.Parallelism {
		return nil
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// stopped reports whether no more Jobs are made since one has failed.
func (w *Work) stopped() bool { return !w.KeepGoing && w.count(failed) > 0 }

// Failed is how many Jobs have failed.
func (w *Work) Failed() int { return w.count(failed) }

func (w *Work) count(s state) (n int) {
	for _, r := range w.runs {
		if r.state == s {
			n++
		}
	}
	return n
}

// Rest is the first time whose Job has not been made; ok is false where there is none.
func (w *Work) Rest() (from time.Time, ok bool) {
	for _, r := range w.runs {
		if r.state == waiting {
			return r.Nominal, true
		}
	}
	return time.Time{}, false
}

// String counts the nominal times by what has become of them.
func (w *Work) String() string {
	out := fmt.Sprintf("%d nominal times: %d complete", len(w.runs), w.count(complete))
	for _, s := range []state{failed, running, existed, ran, waiting} {
		if n := w.count(s); n > 0 {
			out += fmt.Sprintf(", %d %s", n, s)
		}
	}
	return out
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

func result(end *batchv1.JobCondition) string {
	if end == nil {
		return "it runs"
	}
	return string(end.Type)
}

// ended is the condition by which the Job has ended, Complete or Failed, or nil.
func ended(j *batchv1.Job) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}
