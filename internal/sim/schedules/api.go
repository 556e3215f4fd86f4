// Package schedules simulates the world of one ScheduledJob: an API server that holds it and its Jobs, the trigger's alarm, the
// ledger on the bus, a clock. Scripts (functions/scheduledjob) and random worlds (world.go) run in it; the latter crash, repeat,
// reorder and lose.
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

// API is the cluster and the bus as one ScheduledJob sees them. Observations of every change collect in Facts until a caller
// takes them.
type API struct {
	Now time.Time
	// Object is nil once it is deleted.
	Object *events.ScheduledJob
	// Jobs are all Jobs of the namespace, by name.
	Jobs map[string]*Job
	// Ledger holds the verdicts on the bus in the order of their arrival, each ID once.
	Ledger []events.TickDecided
	// BusDown makes the bus accept no announcements.
	BusDown bool
	// Unannounced are the verdicts that a status has dropped without an announcement, each a gap on the ledger.
	Unannounced []events.TickDecided
	// Contradiction describes a verdict that was announced twice with different contents; "" if there is none.
	Contradiction string
	// Facts are what the trigger has seen and no worker has received.
	Facts []events.Event
	// Refuse is the reason why the API server refuses to create Jobs, "" while it accepts them.
	Refuse string
	// Prefix begins every UID, so that they differ from those of another API.
	Prefix string
	// Timer is when the timer fires; zero if none is set.
	Timer time.Time
	// Reports are the Kubernetes Events so far.
	Reports []effect.Report

	version uint64
	uids    int
}

// Job is an existing Job.
type Job struct {
	events.Run
	// Owner is the UID of the ScheduledJob that owns it.
	Owner types.UID
}

// NewAPI returns an empty cluster at the given time.
func NewAPI(now time.Time) *API { return &API{Now: now, Jobs: map[string]*Job{}} }

func (a *API) next() uint64 { a.version++; return a.version }

// second returns the current time as objects have it: of a whole second (metav1.Time).
func (a *API) second() time.Time { return a.Now.Truncate(time.Second) }

func (a *API) uid(prefix string) types.UID {
	a.uids++
	return types.UID(fmt.Sprintf("%s%s-%d", a.Prefix, prefix, a.uids))
}

// Create creates the ScheduledJob. It replaces one of the same name, whose Jobs stay until they are deleted.
func (a *API) Create(j events.ScheduledJob) {
	j.UID, j.Version, j.Generation, j.Created = a.uid("uid"), a.next(), 1, a.second()
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

// observation returns the ScheduledJob as the trigger observes it now; later changes do not affect it.
func (a *API) observation() events.ScheduledJob {
	return events.ProjectScheduledJob(scheduleObject(*a.Object))
}

// observe returns a Job of the ScheduledJob as the trigger observes it.
func (a *API) observe(j *Job) events.Run {
	_, run, ok := events.ProjectRun(runObject(j, a.Object.Name))
	if !ok {
		panic(j.Name + " is no Job of a ScheduledJob")
	}
	return run
}

// AddJob adds a Job that this controller has not created. With owned the ScheduledJob owns it.
func (a *API) AddJob(name string, owned bool) {
	j := &Job{Run: events.Run{Name: name, UID: a.uid("job"), Version: a.next(), Created: a.second()}}
	if owned {
		j.Owner = a.Object.UID
	}
	a.Jobs[name] = j
	a.tell(j)
}

// Backfill creates a Job for a nominal time, as a user does. At most one exists for each time.
func (a *API) Backfill(nominal time.Time) (name string, made bool) {
	name = a.Object.Name + "-" + events.NominalHash(nominal)
	if a.Jobs[name] != nil {
		return name, false
	}
	j := &Job{Run: events.Run{Name: name, UID: a.uid("job"), Version: a.next(), Created: a.second(), Nominal: nominal, Manual: true}, Owner: a.Object.UID}
	a.Jobs[name] = j
	a.tell(j)
	return name, true
}

// Finish ends a Job.
func (a *API) Finish(name string, result events.RunResult) {
	j := a.Jobs[name]
	j.Result, j.Finished, j.Version = result, a.second(), a.next()
	a.tell(j)
}

// Remove removes a Job.
func (a *API) Remove(name string) {
	j := a.Jobs[name]
	j.Version = a.next()
	delete(a.Jobs, name)
	if a.Object != nil && j.Owner == a.Object.UID {
		a.Facts = append(a.Facts, events.RunGone{Run: a.observe(j)})
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
		a.Facts = append(a.Facts, events.RunObserved{Run: a.observe(j)})
	}
}

// Names returns the names of all Jobs, sorted.
func (a *API) Names() []string { return slices.Sorted(maps.Keys(a.Jobs)) }

// Running returns the names of the ScheduledJob's own unfinished Jobs.
func (a *API) Running() (names []string) {
	for _, name := range a.Names() {
		if j := a.Jobs[name]; a.Object != nil && j.Owner == a.Object.UID && j.Result == "" {
			names = append(names, name)
		}
	}
	return names
}

// Known reports whether a status lists the Job. One that vanishes before that may be created again.
func (a *API) Known(name string) bool {
	d := a.Object.Status.DecidedUntil
	return d != nil && !a.Jobs[name].Nominal.After(d.Time)
}

// decidedUntil returns the time that the status has reached, zero for none.
func (a *API) decidedUntil() time.Time {
	if a.Object == nil || a.Object.Status.DecidedUntil == nil {
		return time.Time{}
	}
	return a.Object.Status.DecidedUntil.Time
}

// Times returns the nominal times of the ScheduledJob.
func (a *API) Times() times { //nolint:revive // for scripts and worlds, which only call it
	if at := a.Object.RunAt; !at.IsZero() {
		return runAt(at)
	}
	all, left := a.lists()
	if len(a.Object.Exclude) > 0 {
		return open{all, left, a.Object}
	}
	return open{all, nil, a.Object}
}

// Excluded returns the times that the ScheduledJob leaves out; nil for none.
func (a *API) Excluded() times { //nolint:revive // for scripts and worlds, which only call it
	if !a.Object.RunAt.IsZero() || len(a.Object.Exclude) == 0 {
		return nil
	}
	_, left := a.lists()
	return open{left, nil, a.Object}
}

// lists returns the times of all schedules, and those that are left out.
func (a *API) lists() (all, left schedule.Schedule) {
	o, j := schedule.Options{Seed: string(a.Object.UID), Anchor: a.Object.Created}, a.Object
	list := j.Schedules
	if len(list) == 0 {
		list = []string{j.Schedule}
	}
	all, err := schedule.ParseList(schedule.List{Schedules: list}, o)
	if err == nil && len(j.Exclude) > 0 {
		var rest schedule.Schedule
		rest, err = schedule.ParseList(schedule.List{Schedules: list, Exclude: j.Exclude}, o)
		left = rest.Excluded()
	}
	if err != nil {
		panic(err)
	}
	return all, left
}

// List returns a snapshot.
func (a *API) List(id string) events.ScheduleListed {
	out := events.ScheduleListed{ID: id, SchedulesVersion: a.version, Version: a.version}
	if a.Object == nil {
		return out
	}
	observation := a.observation()
	out.Name, out.ScheduledJob = a.Object.Name, &observation
	for _, j := range a.Jobs {
		if j.Owner == a.Object.UID {
			out.Runs = append(out.Runs, a.observe(j))
		}
	}
	slices.SortFunc(out.Runs, func(x, y events.Run) int { return cmp.Compare(x.Version, y.Version) })
	return out
}

// Act carries out an effect, and returns the facts of the answer.
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
			return []events.Event{events.RunObserved{Run: a.observe(j)}}
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
		panic("no part of this world carries out " + e.String())
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
			a.Contradiction = fmt.Sprintf("%v is announced, and was announced as %v before", p, t)
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
		return []events.Event{events.RunObserved{Run: a.observe(j)}}
	case j != nil:
		return refuse("AlreadyExists", fmt.Sprintf("a Job %s exists that the ScheduledJob does not own: delete it", e.Name))
	case a.Refuse != "":
		return refuse(a.Refuse, "the API server refuses it")
	}
	j := &Job{Run: events.Run{Name: e.Name, UID: a.uid("job"), Version: a.next(), Nominal: e.Nominal, Created: a.second()}, Owner: a.Object.UID}
	a.Jobs[e.Name] = j
	a.tell(j)
	return []events.Event{events.RunObserved{Run: a.observe(j)}}
}

func (a *API) deleteRun(e effect.DeleteRun) []events.Event {
	j := a.Jobs[e.Name]
	if j == nil || j.UID != e.UID {
		return []events.Event{events.RunGone{Run: events.Run{Name: e.Name, UID: e.UID}}}
	}
	if e.Version != 0 && e.Version != j.Version {
		return []events.Event{events.RunObserved{Run: a.observe(j)}}
	}
	if !e.Foreground {
		a.Remove(e.Name)
		return nil
	}
	j.Deleting, j.Version = true, a.next()
	a.tell(j)
	return []events.Event{events.RunObserved{Run: a.observe(j)}}
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
