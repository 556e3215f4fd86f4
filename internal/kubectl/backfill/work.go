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
//	had run, if the status has a verdict that a Job was made
type Work struct {
	// Parallelism is how many Jobs of these nominal times run at once, 1 or more, no matter who created them.
	Parallelism int
	// KeepGoing reports whether the backfill goes on after a Job has failed.
	KeepGoing bool
	// Alone reports whether the backfill waits while any other Job of the ScheduledJob runs.
	Alone bool

	runs  []*run
	other map[types.UID]string // running Jobs of the ScheduledJob that the backfill did not create
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

// New returns the backfill of these times. Unless again is set, it leaves out those known to have had a Job.
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

// Unknown returns how many of the Jobs to be made belong to times without a known verdict.
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

// Saw records the current state of one of the ScheduledJob's Jobs, and returns a line about it, or "".
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

// Gone records that a Job was deleted; j is its last version.
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

// Next returns the time whose Job is to be created now; ok is false if there is none.
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

// Made records that the Job was created, and returns a line about it.
func (w *Work) Made(j *batchv1.Job) string {
	r := w.find(j.Name)
	r.state, r.uid, r.since = running, j.UID, j.CreationTimestamp.Time
	return fmt.Sprintf("%s  job.batch/%s created", stamp(r.Nominal), r.Job)
}

// Follows reports whether the backfill created the Job with that UID.
func (w *Work) Follows(uid types.UID) bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return r.uid == uid })
}

// Over reports whether nothing is left to do or to wait for.
func (w *Work) Over() bool {
	return w.count(running) == 0 && (w.stopped() || w.count(waiting) == 0)
}

// WaitsFor returns the sorted names of the Jobs that hold up the next one. It returns none if those are the backfill's own.
func (w *Work) WaitsFor() []string {
	if w.stopped() || w.count(waiting) == 0 || w.count(running) > 0 {
		return nil
	}
	return w.others()
}

// others returns the Jobs of other creators that hold up the next one. With Alone that is every running Job of the ScheduledJob;
// otherwise it is those of the backfill's own nominal times, such as an earlier backfill's, once they use up the parallelism.
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

// stopped reports whether a failure has ended the creation of Jobs.
func (w *Work) stopped() bool { return !w.KeepGoing && w.count(failed) > 0 }

// Failed returns the number of Jobs that have failed.
func (w *Work) Failed() int { return w.count(failed) }

func (w *Work) count(s state) (n int) {
	for _, r := range w.runs {
		if r.state == s {
			n++
		}
	}
	return n
}

// Rest returns the first time whose Job has not been created; ok is false if there is none.
func (w *Work) Rest() (from time.Time, ok bool) {
	for _, r := range w.runs {
		if r.state == waiting {
			return r.Nominal, true
		}
	}
	return time.Time{}, false
}

// String returns the number of nominal times in each state.
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

// ended returns the condition that ended the Job, Complete or Failed, or nil.
func ended(j *batchv1.Job) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}
