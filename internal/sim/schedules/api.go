// Package schedules simulates the world of one ScheduledJob: an API server that holds it and its Jobs, the trigger's alarm,
// the ledger on the bus, a clock. Scripts play in it (functions/scheduledjob), and random worlds (world.go) that crash,
// repeat, reorder and lose.
package schedules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/schedule"
)

// API is the cluster and the bus, as far as one ScheduledJob is concerned. What happens in it is in Facts until somebody
// takes it.
type API struct {
	Now time.Time
	// Object is nil once it is deleted.
	Object *events.ScheduledJob
	// Jobs are all of the namespace, by name.
	Jobs map[string]*Job
	// Ledger are the verdicts on the bus in the order of their arrival, each ID once.
	Ledger []events.TickDecided
	// BusDown says that the bus takes no announcements.
	BusDown bool
	// Unannounced are the verdicts that a status has forgotten without an announcement, each a gap on the ledger.
	Unannounced []events.TickDecided
	// Contradiction says that a verdict was announced a second time in other words.
	Contradiction string
	// Facts are what the trigger has seen and nobody has been told of.
	Facts []events.Event
	// Refuse is the reason why the API server refuses to make Jobs, "" while it does not.
	Refuse string
	// Prefix begins every UID, so that those of another API are others.
	Prefix string
	// Timer is when the timer fires; zero while none is set.
	Timer time.Time
	// Reports are the Events that people have been told.
	Reports []effect.Report

	version uint64
	uids    int
}

// Job is one that exists.
type Job struct {
	events.Run
	// Owner is the UID of the ScheduledJob that owns it.
	Owner types.UID
}

// NewAPI is an empty cluster at the given time.
func NewAPI(now time.Time) *API { return &API{Now: now, Jobs: map[string]*Job{}} }

func (a *API) next() uint64 { a.version++; return a.version }

func (a *API) uid(prefix string) types.UID {
	a.uids++
	return types.UID(fmt.Sprintf("%s%s-%d", a.Prefix, prefix, a.uids))
}

// Create makes the ScheduledJob; it replaces one of the same name, whose Jobs stay unless they are told to go.
func (a *API) Create(j events.ScheduledJob) {
	j.UID, j.Version, j.Generation, j.Created = a.uid("uid"), a.next(), 1, a.Now
	a.Object = &j
	a.Facts = append(a.Facts, events.ScheduledJobObserved{ScheduledJob: a.observation()})
}

// Edit changes the spec.
func (a *API) Edit(change func(*events.ScheduledJob)) {
	change(a.Object)
	a.Object.Generation++
	a.touch()
}

func (a *API) touch() {
	a.Object.Version = a.next()
	a.Facts = append(a.Facts, events.ScheduledJobObserved{ScheduledJob: a.observation()})
}

// observation is the ScheduledJob as it is now; later changes do not show in it.
func (a *API) observation() events.ScheduledJob {
	j := *a.Object
	j.Status = *j.Status.DeepCopy()
	return j
}

// AddJob adds a Job that somebody else has made. Owned makes it one of the ScheduledJob's.
func (a *API) AddJob(name string, owned bool) {
	j := &Job{Run: events.Run{Name: name, UID: a.uid("job"), Version: a.next(), Created: a.Now}}
	if owned {
		j.Owner = a.Object.UID
	}
	a.Jobs[name] = j
	a.tell(j)
}

// Backfill makes a Job for a nominal time, as a user does. There is one for each time at most.
func (a *API) Backfill(nominal time.Time) (name string, made bool) {
	name = a.Object.Name + "-" + events.NominalHash(nominal)
	if a.Jobs[name] != nil {
		return name, false
	}
	j := &Job{Run: events.Run{Name: name, UID: a.uid("job"), Version: a.next(), Created: a.Now, Nominal: nominal, Manual: true}, Owner: a.Object.UID}
	a.Jobs[name] = j
	a.tell(j)
	return name, true
}

// Finish ends a Job.
func (a *API) Finish(name string, result events.RunResult) {
	j := a.Jobs[name]
	j.Result, j.Finished, j.Version = result, a.Now, a.next()
	a.tell(j)
}

// Remove deletes a Job for good.
func (a *API) Remove(name string) {
	j := a.Jobs[name]
	j.Version = a.next()
	delete(a.Jobs, name)
	if a.Object != nil && j.Owner == a.Object.UID {
		a.Facts = append(a.Facts, events.RunGone{Run: j.Run})
	}
}

// Delete deletes the ScheduledJob, and its Jobs with it.
func (a *API) Delete() {
	for _, name := range a.Names() {
		if a.Jobs[name].Owner == a.Object.UID {
			a.Remove(name)
		}
	}
	a.Facts = append(a.Facts, events.ScheduledJobGone{Name: a.Object.Name, Version: a.next()})
	a.Object = nil
}

func (a *API) tell(j *Job) {
	if a.Object != nil && j.Owner == a.Object.UID {
		a.Facts = append(a.Facts, events.RunObserved{Run: j.Run})
	}
}

// Names are those of all Jobs, sorted.
func (a *API) Names() []string { return slices.Sorted(maps.Keys(a.Jobs)) }

// Running are the names of the ScheduledJob's own Jobs that have not finished.
func (a *API) Running() (names []string) {
	for _, name := range a.Names() {
		if j := a.Jobs[name]; a.Object != nil && j.Owner == a.Object.UID && j.Result == "" {
			names = append(names, name)
		}
	}
	return names
}

// Known says that the cluster remembers the Job: one that vanishes before that may be made again.
func (a *API) Known(name string) bool {
	d := a.Object.Status.DecidedUntil
	return d != nil && !a.Jobs[name].Nominal.After(d.Time)
}

// Times are those at which Jobs are due.
func (a *API) Times() schedule.Schedule {
	s, err := schedule.Parse(a.Object.Schedule, schedule.Options{Seed: string(a.Object.UID), Anchor: a.Object.Created})
	if err != nil {
		panic(err)
	}
	return s
}

// List is a snapshot.
func (a *API) List(id string) events.ScheduleListed {
	out := events.ScheduleListed{ID: id, SchedulesVersion: a.version, Version: a.version}
	if a.Object == nil {
		return out
	}
	observation := a.observation()
	out.Name, out.ScheduledJob = a.Object.Name, &observation
	for _, j := range a.Jobs {
		if j.Owner == a.Object.UID {
			out.Runs = append(out.Runs, j.Run)
		}
	}
	slices.SortFunc(out.Runs, func(x, y events.Run) int { return cmp.Compare(x.Version, y.Version) })
	return out
}

// Act does an effect, and returns what the answer tells.
func (a *API) Act(e effect.Effect) []events.Event {
	switch e := e.(type) {
	case effect.SetTimer:
		a.Timer = e.At
	case effect.Announce:
		return a.announce(e.Event)
	case effect.TakeInventory:
		return []events.Event{a.List(e.ID)}
	case effect.CreateJob:
		return a.createJob(e)
	case effect.FindRun:
		if j := a.Jobs[e.Name]; j != nil && a.Object != nil && j.Owner == a.Object.UID {
			return []events.Event{events.RunObserved{Run: j.Run}}
		}
		return []events.Event{events.RunMissing{Name: e.Name, ID: e.ID}}
	case effect.DeleteRun:
		return a.deleteRun(e)
	case effect.WriteScheduleStatus:
		return a.writeStatus(e)
	case effect.DeleteScheduledJob:
		if a.Object != nil && a.Object.Version == e.Version {
			a.Delete()
		}
	default:
		panic("nobody here can do " + e.String())
	}
	return nil
}

func (a *API) announce(p events.Public) []events.Event {
	if a.BusDown {
		return []events.Event{effect.Unconfirmed(errors.New("timeout"), a.Now)}
	}
	id := events.PublicID(p)
	for _, t := range a.Ledger {
		if events.PublicID(t) != id {
			continue
		}
		if t.String() != p.String() {
			a.Contradiction = fmt.Sprintf("%v is announced, and was %v", p, t)
		}
		return []events.Event{events.Announced{ID: id}}
	}
	a.Ledger = append(a.Ledger, p.(events.TickDecided))
	return []events.Event{events.Announced{ID: id}}
}

func (a *API) createJob(e effect.CreateJob) []events.Event {
	refuse := func(reason, message string) []events.Event {
		return []events.Event{events.EffectRefused{Effect: e.Kind(), Serial: events.NoSerial, Name: e.Name, Reason: reason, Message: message, At: a.Now}}
	}
	switch j := a.Jobs[e.Name]; {
	case a.Object == nil:
		return []events.Event{events.ScheduledJobGone{Name: e.ScheduledJob}}
	case j != nil && j.Owner == a.Object.UID:
		return []events.Event{events.RunObserved{Run: j.Run}}
	case j != nil:
		return refuse("AlreadyExists", fmt.Sprintf("a Job %s exists that is not ours: delete it", e.Name))
	case a.Refuse != "":
		return refuse(a.Refuse, "the API server refuses it")
	}
	j := &Job{Run: events.Run{Name: e.Name, UID: a.uid("job"), Version: a.next(), Nominal: e.Nominal, Created: a.Now}, Owner: a.Object.UID}
	a.Jobs[e.Name] = j
	a.tell(j)
	return []events.Event{events.RunObserved{Run: j.Run}}
}

func (a *API) deleteRun(e effect.DeleteRun) []events.Event {
	j := a.Jobs[e.Name]
	if j == nil || j.UID != e.UID {
		return []events.Event{events.RunGone{Run: events.Run{Name: e.Name, UID: e.UID}}}
	}
	if e.Version != 0 && e.Version != j.Version {
		return []events.Event{events.RunObserved{Run: j.Run}}
	}
	if !e.Foreground {
		a.Remove(e.Name)
		return nil
	}
	j.Deleting, j.Version = true, a.next()
	a.tell(j)
	return []events.Event{events.RunObserved{Run: j.Run}}
}

func (a *API) writeStatus(e effect.WriteScheduleStatus) []events.Event {
	if a.Object == nil {
		return []events.Event{events.ScheduledJobGone{Name: e.ScheduledJob}}
	}
	if a.Object.Version == e.Version {
		a.Unannounced = append(a.Unannounced, e.Unannounced...)
		a.Object.Status = *e.Status.DeepCopy()
		a.Reports = append(a.Reports, e.Reports...)
		a.touch()
	}
	return []events.Event{events.ScheduledJobObserved{ScheduledJob: a.observation()}}
}
