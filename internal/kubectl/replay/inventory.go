package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/catalog"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/job"
)

// inventory returns the snapshot that the API server would have shown, made of the facts so far. If these begin in the middle of the
// object's life, what existed before is taken from a snapshot of the trigger, else from the first fact about it.
func (w *world) inventory(e effect.TakeInventory, at time.Time) events.Event {
	switch catalog.Name(w.key.Function) {
	case catalog.Job:
		return w.jobListed(e, at)
	case catalog.ScheduledJob:
		return w.scheduleListed(e, at)
	}
	return nil // no record is of another function: Fold refuses it
}

func (w *world) jobListed(e effect.TakeInventory, at time.Time) events.JobListed {
	list := events.JobListed{ID: e.ID, Name: e.Job}
	pods := map[string]events.Pod{}
	if last := lastSnapshot[events.JobListed](w); last != nil {
		list.Job, list.JobsVersion, list.Version, list.AdoptsNone = last.Job, last.JobsVersion, last.Version, last.AdoptsNone
		for _, p := range last.Pods {
			pods[p.Name] = p
		}
	}
	switch x := w.newest(w.jobs, at, list.Job != nil).(type) {
	case events.JobObserved:
		if x.Job.Version >= list.JobsVersion {
			list.Job, list.JobsVersion = &x.Job, x.Job.Version
		}
	case events.JobGone:
		list.Job = nil
	}
	if list.Job != nil {
		list.Name = list.Job.Name
		if list.Job.Untouched() || list.Job.Foreign { // it costs a GET without a list of Pods
			return list
		}
	}
	for name, places := range w.pods {
		p, gone := podOf(w.newest(places, at, pods[name].Name != ""))
		list.Version = max(list.Version, p.Version)
		switch {
		case gone:
			delete(pods, name)
		case p.Version >= pods[name].Version && p.Name != "":
			pods[name] = p
		}
	}
	for _, p := range pods {
		if p.End = nil; job.Concerns(list.Job, p) {
			list.Pods = append(list.Pods, p)
		}
	}
	slices.SortFunc(list.Pods, func(a, b events.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// lastSnapshot returns the last of the trigger's snapshots of that type so far, nil if there is none.
func lastSnapshot[E events.JobListed | events.ScheduleListed](w *world) *E {
	for i := min(w.position, len(w.facts)) - 1; i >= 0; i-- {
		if x, is := any(w.facts[i].event).(E); is {
			return &x
		}
	}
	return nil
}

func (w *world) scheduleListed(e effect.TakeInventory, at time.Time) events.ScheduleListed {
	list := events.ScheduleListed{ID: e.ID, Name: e.Job}
	runs := map[string]events.Run{}
	if last := lastSnapshot[events.ScheduleListed](w); last != nil {
		list.ScheduledJob, list.SchedulesVersion, list.Version = last.ScheduledJob, last.SchedulesVersion, last.Version
		for _, r := range last.Runs {
			runs[r.Name] = r
		}
	}
	switch x := w.newest(w.schedules, at, list.ScheduledJob != nil).(type) {
	case events.ScheduledJobObserved:
		if x.ScheduledJob.Version >= list.SchedulesVersion {
			list.ScheduledJob, list.SchedulesVersion = &x.ScheduledJob, x.ScheduledJob.Version
		}
	case events.ScheduledJobGone:
		list.ScheduledJob = nil
	}
	if list.ScheduledJob != nil {
		list.Name = list.ScheduledJob.Name
	}
	for name, places := range w.runs {
		r, gone := runOf(w.newest(places, at, runs[name].Name != ""))
		list.Version = max(list.Version, r.Version)
		switch {
		case gone:
			delete(runs, name)
		case r.Version >= runs[name].Version && r.Name != "":
			runs[name] = r
		}
	}
	for _, r := range runs {
		list.Runs = append(list.Runs, r)
	}
	slices.SortFunc(list.Runs, func(a, b events.Run) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// newest returns the newest fact so far about an object, nil if there is none. If no snapshot shows the object either, and it existed
// before the facts begin, it returns the first fact about it.
func (w *world) newest(places []int, at time.Time, shown bool) events.Event {
	n, _ := slices.BinarySearch(places, w.position)
	switch {
	case n > 0:
		return w.facts[places[n-1]].event
	case len(places) == 0, shown, w.whole:
		return nil
	}
	if first := w.facts[places[0]].event; createdAt(first).Before(at) && !createdAt(first).IsZero() {
		return first
	}
	return nil
}

// parameters returns the answer to reading the ConfigMap with the values of each completion. No fact has it: that Pods were created
// shows that it was valid.
func (w *world) parameters(e effect.ReadParameters, at time.Time) answer {
	if x, is := w.newest(w.jobs, at, false).(events.JobObserved); is && x.Job.Completions != nil && len(w.pods) > 0 {
		return itself(events.ParametersObserved{Name: e.ConfigMap, Count: int(*x.Job.Completions), At: at})
	}
	return unseen
}
