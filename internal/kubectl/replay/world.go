package replay

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// answeredWithin is how long after an effect a fact may show its result: the reconciler waits for an answer for 15 seconds.
const answeredWithin = 15 * time.Second

// createdWithin is how long after an effect an object may have been created that answers it. Objects show that in full seconds, by the
// clock of another machine.
const createdWithin = 2 * time.Second

// world is the cluster as the facts show it.
type world struct {
	key      events.Key
	facts    []fact
	position int // so many facts have been folded
	unread   int
	whole    bool         // the facts begin with the creation of the object
	told     map[int]bool // facts that have answered an effect
	// known are the versions up to which the function knows each Pod: an answer is newer.
	known map[types.UID]uint64
	// job and schedule are the newest observation of the Job or the ScheduledJob that the function knows; nil if it knows none.
	job      *events.Job
	schedule *events.ScheduledJob
	// jobs, schedules, pods and runs are the places of facts that show the Job, the ScheduledJob, a Pod by its name, and a Job of the
	// ScheduledJob by its name.
	jobs, schedules []int
	pods, runs      map[string][]int
}

// fact is a decoded fact, at its place among all.
type fact struct {
	Fact
	place int
	event events.Event
	err   error
}

func newWorld(r Record) *world {
	w := &world{key: r.Key(), told: map[int]bool{}, known: map[types.UID]uint64{}, pods: map[string][]int{}, runs: map[string][]int{}}
	for i, stored := range r.Facts {
		f := fact{Fact: stored, place: i}
		if f.event, f.err = stored.decode(w.key); f.err != nil {
			w.unread++
		}
		w.facts = append(w.facts, f)
		switch e := f.event.(type) {
		case events.JobObserved, events.JobGone:
			w.jobs = append(w.jobs, i)
		case events.ScheduledJobObserved, events.ScheduledJobGone:
			w.schedules = append(w.schedules, i)
		case events.PodObserved:
			w.pods[e.Pod.Name] = append(w.pods[e.Pod.Name], i)
		case events.PodGone:
			w.pods[e.Pod.Name] = append(w.pods[e.Pod.Name], i)
		case events.RunObserved:
			w.runs[e.Run.Name] = append(w.runs[e.Run.Name], i)
		case events.RunGone:
			w.runs[e.Run.Name] = append(w.runs[e.Run.Name], i)
		}
	}
	w.whole = w.begins()
	return w
}

// begins reports whether the facts begin with the creation of the object.
func (w *world) begins() bool {
	for _, f := range w.facts {
		switch e := f.event.(type) {
		case events.JobObserved:
			return e.Job.Untouched()
		case events.ScheduledJobObserved:
			return e.ScheduledJob.Status.DecidedUntil == nil && e.ScheduledJob.Generation <= 1
		}
	}
	return false
}

// answer is what the API server or the bus answered to an effect.
type answer struct {
	facts []events.Event
	// place is that of the stored fact that shows it, -1 if the answer is in none.
	place int
}

func (a answer) none() bool { return len(a.facts) == 0 }

// unseen is the answer that no fact shows.
var unseen = answer{place: -1}

// itself is an answer that is in no fact.
func itself(e events.Event) answer { return answer{[]events.Event{e}, -1} }

// answers returns the answer to each effect; done reports whether facts show all of them, and none too early.
func (w *world) answers(effects []effect.Effect, at time.Time) (all []answer, done bool) {
	done = true
	own := -1 // the fact that shows the write of the Job's status among them
	for _, e := range effects {
		a := w.answer(e, at)
		all = append(all, a)
		done = done && (!a.none() || e.Kind() == effect.KindSetTimer)
		if e.Kind() == effect.KindWriteJobStatus {
			own = a.place
		}
	}
	return all, done && !slices.ContainsFunc(effects, func(e effect.Effect) bool { return w.early(e, own, at) })
}

// take returns the facts of an answer, which the function knows from now on.
func (w *world) take(a answer) []events.Event {
	if a.place >= 0 {
		w.told[a.place] = true
		w.knows(w.facts[a.place].event)
	}
	return a.facts
}

// knows notes what the function is told.
func (w *world) knows(x events.Event) {
	if p, _ := podOf(x); p.UID != "" {
		w.known[p.UID] = max(w.known[p.UID], p.Version)
	}
	if j, _ := jobOf(x); j.Version > 0 && (w.job == nil || j.Version > w.job.Version) {
		w.job = &j
	}
	if s, _ := scheduleOf(x); s.Version > 0 && (w.schedule == nil || s.Version > w.schedule.Version) {
		w.schedule = &s
	}
}

// answer returns what the API server or the bus answered, as a later fact shows it.
func (w *world) answer(e effect.Effect, at time.Time) answer {
	switch e := e.(type) {
	case effect.TakeInventory:
		return itself(w.inventory(e, at))
	case effect.Announce:
		return itself(events.Announced{ID: events.PublicID(e.Event)})
	case effect.ReportDropped:
		return itself(events.Announced{ID: e.ID})
	case effect.ReadParameters:
		return w.parameters(e, at)
	case effect.WriteJobStatus:
		return w.first(w.jobs, at, func(x events.Event) (shows, further bool) { return wroteJob(x, e) })
	case effect.DeleteJob:
		return w.first(w.jobs, at, only(func(x events.Event) bool { j, gone := jobOf(x); return gone || j.Deleting && j.Version > e.Version }))
	case effect.WriteScheduleStatus:
		return w.first(w.schedules, at, func(x events.Event) (shows, further bool) { return wroteSchedule(x, e) })
	case effect.DeleteScheduledJob:
		return w.first(w.schedules, at, only(func(x events.Event) bool {
			j, gone := scheduleOf(x)
			return gone || j.Deleting && j.Version > e.Version
		}))
	case effect.CreateJob:
		return w.created(w.runs[e.Name], at)
	case effect.FindRun:
		if found := w.created(w.runs[e.Name], at); !found.none() {
			return found
		}
		return itself(events.RunMissing{Name: e.Name, ID: e.ID})
	case effect.DeleteRun:
		return w.first(w.runs[e.Name], at, only(func(x events.Event) bool {
			run, gone := runOf(x)
			return run.UID == e.UID && (gone || run.Deleting || e.Version != 0 && run.Version > e.Version)
		}))
	}
	return w.answerAboutPod(e, at)
}

func (w *world) answerAboutPod(e effect.Effect, at time.Time) answer {
	newer := func(uid types.UID, ok func(p events.Pod) bool) func(events.Event) (bool, bool) {
		return only(func(x events.Event) bool {
			p, gone := podOf(x)
			return p.UID == uid && p.Version > w.known[uid] && (gone || ok(p))
		})
	}
	any := func(events.Pod) bool { return true }
	switch e := e.(type) {
	case effect.CreatePod:
		if shown := w.created(w.pods[e.Name], at); !shown.none() || len(w.pods[e.Name]) > 0 {
			return shown
		}
		return w.counted(e, at)
	case effect.FindPod:
		if found := w.created(w.pods[e.Name], at); !found.none() {
			return found
		}
		return itself(events.PodGone{Pod: events.Pod{Name: e.Name, Serial: e.Serial, Index: events.NoIndex}})
	case effect.RemoveFinalizer:
		if shown := w.first(w.pods[e.Name], at, newer(e.UID, func(p events.Pod) bool { return !p.Held })); !shown.none() {
			return shown
		}
		return w.released(e, at)
	case effect.AddFinalizer:
		return w.first(w.pods[e.Name], at, newer(e.UID, any))
	case effect.AdoptPod:
		return w.first(w.pods[e.Name], at, newer(e.UID, any))
	case effect.ReleasePod: // it is the Job's no longer, so no fact shows it
		return itself(events.PodGone{Pod: events.Pod{Name: e.Name, UID: e.UID, Serial: events.NoSerial, Index: events.NoIndex}})
	case effect.DeletePod:
		// A Pod that has changed before, and is not deleted, keeps its finalizer.
		deleted := w.first(w.pods[e.Name], at, newer(e.UID, func(p events.Pod) bool { return p.Deleting || e.RemoveFinalizer && p.Held }))
		if deleted.none() && e.RemoveFinalizer {
			deleted = w.first(w.pods[e.Name], at, newer(e.UID, any))
		}
		return deleted
	}
	return unseen
}

// only is for results that any later fact may show.
func only(shows func(events.Event) bool) func(events.Event) (bool, bool) {
	return func(x events.Event) (bool, bool) { return shows(x), true }
}

// first returns the first fact at one of the places that shows the result, if it was stored soon enough. shows also reports whether facts
// further on may show it.
func (w *world) first(places []int, at time.Time, shows func(events.Event) (yes, further bool)) answer {
	for _, i := range places {
		f := w.facts[i]
		if f.Stored.After(at.Add(answeredWithin)) {
			return unseen
		}
		yes, further := shows(f.event)
		if yes {
			return answer{[]events.Event{f.event}, i}
		}
		if !further {
			return unseen
		}
	}
	return unseen
}

// created returns the observation that a creation is answered by: the newest of the object that is there already, else the first to
// come, unless the object was created later.
func (w *world) created(places []int, at time.Time) answer {
	n, _ := slices.BinarySearch(places, w.position)
	i := max(n-1, 0)
	if i >= len(places) {
		return unseen
	}
	f := w.facts[places[i]]
	if created := createdAt(f.event); created.After(at.Add(createdWithin)) || created.IsZero() && f.Stored.After(at.Add(answeredWithin)) {
		return unseen
	}
	if p, gone := podOf(f.event); p.UID != "" && n == 0 && (gone || p.Deleting || p.Phase != events.Pending || p.Waiting != "") {
		return itself(events.PodObserved{Pod: asCreated(p)}) // the fact itself comes later
	}
	return answer{[]events.Event{f.event}, places[i]}
}
