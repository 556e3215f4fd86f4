package main

import (
	"fmt"
	"iter"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/schedule"
	"github.com/jobstream/jobstream/test/bench/report"
)

// run is a nominal time of a ScheduledJob, in seconds since 1970.
type run struct {
	schedule types.UID
	nominal  int64
}

// runs are those whose Jobs a watch has shown. Kept are times, not Jobs: there are thousands.
type runs struct {
	mu    sync.Mutex
	first map[run]time.Time // when the watch showed the first Job of it
	jobs  map[run]types.UID // that Job
	twice map[run]bool      // there was another one
}

func newRuns() *runs {
	return &runs{first: map[run]time.Time{}, jobs: map[run]types.UID{}, twice: map[run]bool{}}
}

// see notes a Job if it is that of a run.
func (r *runs) see(j *metav1.PartialObjectMetadata) { r.note(j, time.Now()) }

func (r *runs) note(j *metav1.PartialObjectMetadata, now time.Time) {
	owner := metav1.GetControllerOf(j)
	nominal, err := time.Parse(time.RFC3339, j.Annotations[v1alpha1.NominalTimeAnnotation])
	if owner == nil || err != nil {
		return
	}
	of := run{owner.UID, nominal.Unix()}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch job, known := r.jobs[of]; {
	case !known:
		r.first[of], r.jobs[of] = now, j.UID
	case job != j.UID:
		r.twice[of] = true
	}
}

// dueRuns are the nominal times of the ScheduledJobs in (from, to], as the reconciler computes them.
func dueRuns(text string, schedules iter.Seq[types.UID], from, to time.Time) (due []run, err error) {
	for uid := range schedules {
		s, err := schedule.Parse(text, schedule.Options{Seed: string(uid)})
		if err != nil {
			return nil, err
		}
		for at := range s.All(from, to) {
			due = append(due, run{uid, at.Unix()})
		}
	}
	return due, nil
}

// punctuality is how the runs that were due have come.
type punctuality struct {
	due, late, twice int
	lateness         []time.Duration // of those that have come, sorted
}

// tooLate is from which lateness on a run counts as late.
const tooLate = time.Second

// judge compares what was due with what has come. Lateness is from the nominal time to the arrival of the Job in the watch.
func (r *runs) judge(due []run) punctuality {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := punctuality{due: len(due)}
	for _, d := range due {
		at, made := r.first[d]
		if !made {
			continue
		}
		lateness := at.Sub(time.Unix(d.nominal, 0))
		p.lateness = append(p.lateness, lateness)
		if lateness > tooLate {
			p.late++
		}
		if r.twice[d] {
			p.twice++
		}
	}
	report.Sort(p.lateness)
	return p
}

// wrong returns an error for runs with more than one Job. One that has not come is in the table: it may only be later than the benchmark
// waits.
func (p punctuality) wrong() error {
	if p.twice > 0 {
		return fmt.Errorf("%d runs have more than one Job", p.twice)
	}
	return nil
}
