// Package history joins what is known of the nominal times of a ScheduledJob: its status, its Jobs that exist, and public events.
// It has no I/O and no clock.
//
//	status.recent, status.lastRun --\
//	Jobs that exist ----------------->  History  -->  Ticks  -->  lines of cells, a table, objects for scripts
//	TickDecided, JobFinish ----------/
//
//	history.go  what is known, from whatever source, and in whatever order it comes
//	tick.go     one verdict with its run
//	strip.go    a cell for each tick
//	lines.go    the strip, its legend and the table, for a screen
//	objects.go  the same for scripts
//
// Verdicts are the same in the status and in the stream, word for word, so they are recognised by the id of their event. Runs are
// joined with them by the UID of the Job.
package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/progress"
)

// History is what is known of a ScheduledJob. The zero value knows nothing.
type History struct {
	// verdicts are known by the ids of their events, runs by the UIDs of their Jobs.
	verdicts map[string]events.TickDecided
	// finished are the ends that a Job or JobFinish tells, counted those that only the status does, and live the Jobs without an end.
	finished, counted, live map[types.UID]Run
	// origins are where the runs come from that a Job or JobFinish tells.
	origins map[types.UID]origin
}

// origin is the ScheduledJob of a run, with its nominal time, and when its Job was created.
type origin struct {
	events.RunOwner
	created time.Time
}

// New returns a History that knows nothing.
func New() *History {
	return &History{verdicts: map[string]events.TickDecided{}, finished: map[types.UID]Run{}, counted: map[types.UID]Run{}, live: map[types.UID]Run{},
		origins: map[types.UID]origin{}}
}

// Announced adds what a public event tells; other events than TickDecided and JobFinished tell nothing.
func (h *History) Announced(p events.Public) {
	switch e := p.(type) {
	case events.TickDecided:
		h.verdicts[events.PublicID(e)] = e
	case events.JobFinished:
		if e.Owner == nil {
			return
		}
		h.origins[e.Job.UID] = origin{*e.Owner, e.Created}
		r := Run{Job: e.Job, State: string(e.Result), Reason: e.Reason, Message: e.Message, Start: e.Start, End: e.End}
		if e.Result == events.JobSucceeded {
			r.State = string(events.RunComplete)
		}
		if e.LastFailure != nil {
			r.Message = brief(*e.LastFailure)
		}
		h.finished[e.Job.UID] = r
	}
}

// SawStatus adds the verdicts in the status of a ScheduledJob, its Jobs that are active, and the ends that it has counted.
func (h *History) SawStatus(s *v1alpha1.ScheduledJob) {
	of := events.Reference{Namespace: s.Namespace, Name: s.Name, UID: s.UID}
	for _, v := range s.Status.Recent {
		e := decided(of, v)
		h.verdicts[events.PublicID(e)] = e
		if e.Job != nil && v.Result != "" {
			h.counted[key(*e.Job)] = Run{Job: *e.Job, State: v.Result, End: instant(v.CompletionTime)}
		}
	}
	if l := s.Status.LastRun; l != nil {
		job := events.Reference{Namespace: s.Namespace, Name: l.JobName, UID: l.JobUID}
		h.counted[key(job)] = Run{Job: job, State: l.Result, Reason: l.Reason,
			Start: instant(l.StartTime), End: l.CompletionTime.UTC()}
	}
	for _, a := range s.Status.Active {
		job := events.Reference{Namespace: s.Namespace, Name: a.Name, UID: a.UID}
		if _, seen := h.live[key(job)]; !seen {
			h.live[key(job)] = Run{Job: job, State: active}
		}
	}
}

// SawJob adds a Job that a ScheduledJob controls; it ignores any other.
func (h *History) SawJob(j *batchv1.Job) {
	p := events.ProjectJob(j, events.Claim{})
	if p.Owner == nil {
		return
	}
	if e, ended := p.Ended(); ended {
		h.Announced(e)
		return
	}
	h.origins[j.UID] = origin{*p.Owner, p.Created}
	state, why := progress.State(j)
	r := Run{Job: events.Reference{Namespace: j.Namespace, Name: j.Name, UID: j.UID}, State: state, Message: why}
	if j.Status.StartTime != nil {
		r.Start = j.Status.StartTime.UTC()
	}
	h.live[j.UID] = r
}

// key identifies a Job: by its UID, or by its name where a status has no UID.
func key(job events.Reference) types.UID {
	if job.UID == "" {
		return types.UID("/" + job.Name)
	}
	return job.UID
}

// Newest returns the ScheduledJob of the newest verdict, for one that is not in the cluster any more; ok is false if there is none.
// A name may have been that of several.
func (h *History) Newest() (of events.Reference, ok bool) {
	var at time.Time
	for _, v := range h.verdicts {
		if v.ScheduledJob.UID != "" && (!ok || last(v).After(at)) {
			of, at, ok = v.ScheduledJob, last(v), true
		}
	}
	return of, ok
}

// Unended returns the names of the Jobs whose end neither a Job nor JobFinish has told, in order and each once.
func (h *History) Unended(uid types.UID) []string {
	names := map[string]bool{}
	for _, v := range h.verdicts {
		if v.ScheduledJob.UID == uid && v.Job != nil {
			if _, known := h.finished[v.Job.UID]; !known {
				names[v.Job.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Ticks returns the verdicts on the ScheduledJob's nominal times, and on the Jobs that users have started, oldest first. A Job
// whose verdict is not known was started all the same.
func (h *History) Ticks(uid types.UID) []Tick {
	var all []Tick
	has := map[types.UID]bool{}
	for _, v := range h.verdicts {
		if v.ScheduledJob.UID != uid {
			continue
		}
		t := Tick{TickDecided: v}
		t.Count = min(max(t.Count, 1), mostTimes)
		if v.Job != nil {
			t.Run = h.run(*v.Job)
			has[v.Job.UID] = true
		}
		all = append(all, t)
	}
	for job, o := range h.origins {
		if o.ScheduledJob.UID == uid && !has[job] {
			all = append(all, h.undecided(job, o))
		}
	}
	slices.SortFunc(all, func(a, b Tick) int {
		return cmp.Or(a.Nominal.Compare(b.Nominal), a.Until.Compare(b.Until), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.job(), b.job()))
	})
	return all
}

// run returns what is known of the run of a Job. A Job tells more of its end than the status, which also knows the end of a Job
// that is gone.
func (h *History) run(job events.Reference) *Run {
	for _, known := range []map[types.UID]Run{h.finished, h.counted, h.live} {
		if r, ok := known[key(job)]; ok {
			return &r
		}
	}
	return &Run{Job: job}
}

// undecided returns the tick of a Job whose verdict is not known.
func (h *History) undecided(job types.UID, from origin) Tick {
	r := h.run(events.Reference{UID: job})
	e := events.TickDecided{ScheduledJob: from.ScheduledJob, Verdict: events.Started, Nominal: from.Nominal, Count: 1, Job: &r.Job}
	switch {
	case from.Nominal.IsZero():
		e.Reason, e.Nominal = events.ReasonManual, from.created
	case from.Manual:
		e.Reason = events.ReasonBackfill
	}
	return Tick{TickDecided: e, Run: r}
}
