package schedules

import (
	"fmt"
	"slices"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Truth is what really happened, independent of what the function believes.
type Truth struct {
	// Edited reports whether the schedule has changed. By which schedule a time was due is then unknown.
	Edited bool
	// Late reports whether a Job was created by a worker that slept between its look at the clock and the call: a Job that is
	// gone by then may reappear.
	Late bool
	// Until is the time up to which everything must be decided in the end; zero is now.
	Until time.Time
	// Ahead is how far the fastest clock is ahead.
	Ahead time.Duration
	// DecidedAt is when the worker decided what it is about to do, and Lost when a memory was last lost.
	DecidedAt, Lost time.Time

	world     *API
	made      map[string]int // Jobs that were created, by name
	ends      []ending
	gone      map[string]time.Time // when Jobs were gone, by name
	unsure    map[string]bool      // those of them that no status had counted when the memory of them was lost
	missed    map[string]time.Time // when a worker looked for a Job and did not find it, by its name
	inventory time.Time            // when a worker last took inventory
	asked     string               // the snapshot that was last asked for
	listedAt  time.Time            // when that reached the function
	vain      map[string]bool      // Jobs whose nominal time may have another verdict, by another worker
	passed    time.Time            // when a status last passed a nominal time
	before    time.Time            // when a worker decided to write that status
	broken    error
	jobs      int       // how many there were before the effect
	until     time.Time // status.decidedUntil before it
	users     *byHand
	// confirmed is when the function last received the confirmation of an announcement.
	confirmed time.Time
	// seen are the Jobs that a worker has observed, by name, and outdated is the version of the latest deletion: an older observation
	// looks like one of a Job that is gone, until the next list.
	seen     map[string]bool
	outdated uint64
	// planned are the Jobs whose creation was decided, by name. newest is the nominal time of the Job that was created last, at newestAt.
	planned          map[string]bool
	newest, newestAt time.Time
	// taken are the ids of the announcements that it knows to be confirmed.
	taken map[string]bool
}

// NewTruth returns the truth about a, from now on.
func NewTruth(a *API) *Truth {
	return &Truth{world: a, taken: map[string]bool{}, planned: map[string]bool{}, seen: map[string]bool{}, users: newByHand(a), made: map[string]int{}, missed: map[string]time.Time{}, vain: map[string]bool{}, unsure: map[string]bool{}, gone: map[string]time.Time{}}
}

// Err returns the first law that was broken.
func (t *Truth) Err() error { return t.broken }

// Vain reports whether the Job was created while another worker gave another verdict: it had not found the Job, and the worker that
// created it had decided so before that; or its memory was lost before it wrote the status that says so, and the next memory read the
// ScheduledJob before that. The Job is deleted as soon as it is seen, and is not counted.
func (t *Truth) Vain(name string) bool { return t.vain[name] }

// Ended records how a Job has ended; "" is for one that has vanished.
func (t *Truth) Ended(name string, result events.RunResult) {
	t.ends = append(t.ends, ending{name, result})
	t.users.ended(name)
}

type ending struct {
	name   string
	result events.RunResult
}

// Gone records the deletion of a Job that has ended. If no status has counted it, and what a worker knew was lost and no snapshot that it
// asked for has come since, its result is unknown, too.
func (t *Truth) Gone(name string) {
	t.gone[name] = t.world.Now
	if t.Lost.IsZero() || t.listedAt.After(t.Lost) || t.world.Object == nil {
		return
	}
	for _, ref := range t.world.Object.Status.Active {
		t.unsure[name] = t.unsure[name] || ref.Name == name
	}
}

func (t *Truth) wasGone(name string) bool { return !t.gone[name].IsZero() }

// Forgot records that what a worker knew, or facts on their way to it, were lost. The results of Jobs that have been deleted by then,
// and that no status has counted, are unknown.
func (t *Truth) Forgot() {
	t.Lost, t.asked = t.world.Now, "none"
	for _, ref := range t.world.Object.Status.Active {
		t.unsure[ref.Name] = t.unsure[ref.Name] || t.wasGone(ref.Name)
	}
}

func (t *Truth) fail(format string, args ...any) {
	if t.broken == nil {
		t.broken = fmt.Errorf(format, args...)
	}
}

// Before checks an effect before it is carried out.
func (t *Truth) Before(e effect.Effect) {
	w := t.world
	t.jobs, t.until = len(w.Jobs), w.decidedUntil()
	switch e := e.(type) {
	case effect.CreateJob:
		if !t.Late && w.Object != nil && w.Jobs[e.Name] == nil && w.Refuse == "" && w.Object.ConcurrencyPolicy != v1alpha1.AllowConcurrent {
			if beside := slices.DeleteFunc(w.Running(), t.users.started); len(beside) > 0 {
				t.fail("%v beside %v, though the policy is %s", e, beside, w.Object.ConcurrencyPolicy)
			}
		}
	case effect.DeleteRun:
		if j := w.Jobs[e.Name]; j != nil && (e.Version == 0 || e.Version == j.Version) && j.Result != "" && (!w.Known(e.Name) || t.listed(j)) {
			t.fail("%v before its end is counted", e)
		} else if j != nil && t.users.unseen(e.Name) && !t.users.doubt[e.Name] {
			t.fail("%v, which a user has started, without a verdict", e)
		}
	case effect.DeleteScheduledJob:
		t.expires(e)
	case effect.WriteScheduleStatus:
		if w.Object != nil && e.Version == w.Object.Version {
			if most := w.Object.QueueLimit + 1; e.Status.Queued > most {
				t.fail("%v, though at most %d may wait, and one may start", e, w.Object.QueueLimit)
			}
			t.gaps(e)
			t.late(e.Status)
			t.onLedger(e.Status, e.Unannounced...)
		}
	}
}

// decides records what a worker has decided to do. It decides to create no Job while the ScheduledJob is paused.
func (t *Truth) decides(all []effect.Effect) {
	for _, e := range all {
		if c, ok := e.(effect.CreateJob); ok {
			if j := t.world.Object; j != nil && j.Paused() && !t.planned[c.Name] {
				t.fail("%v, though %d Jobs have failed in a row", e, j.Status.ConsecutiveFailures)
			}
			t.planned[c.Name] = true
		}
	}
}

// After records what an effect has done.
func (t *Truth) After(e effect.Effect) {
	if t.world.Contradiction != "" {
		t.fail("%s", t.world.Contradiction)
	}
	switch e := e.(type) {
	case effect.FindRun:
		if t.world.Jobs[e.Name] == nil {
			t.missed[e.Name] = t.world.Now
		}
	case effect.TakeInventory:
		t.inventory, t.asked = t.world.Now, e.ID
	case effect.WriteScheduleStatus:
		if t.world.decidedUntil() != t.until {
			t.passed, t.before = t.world.Now, t.DecidedAt
			t.overtaken()
		}
	}
	c, ok := e.(effect.CreateJob)
	if !ok || len(t.world.Jobs) == t.jobs {
		return
	}
	// Of two workers, one may repeat the creation when a user has deleted the Job in between.
	if t.made[c.Name]++; t.made[c.Name] > 1 && !t.Late && !t.DecidedAt.Before(t.gone[c.Name]) {
		t.fail("%v a second time", c)
	}
	if t.DecidedAt.Before(t.missed[c.Name]) || t.DecidedAt.Before(t.inventory) || t.passedByLost(c.Nominal) {
		t.vain[c.Name] = true
	}
	t.inOrder(c)
	if c.Nominal.After(t.world.Now.Add(t.Ahead)) {
		t.fail("%v before its time", c)
	}
}

// inOrder checks that the times of a queue start in their order. A memory that was lost may have given up an earlier one, and the next
// memory tries that again.
func (t *Truth) inOrder(c effect.CreateJob) {
	queued := t.world.Object != nil && t.world.Object.ConcurrencyPolicy == v1alpha1.QueueConcurrent
	if queued && !t.Edited && !t.Late && c.Nominal.Before(t.newest) && t.made[c.Name] == 1 && t.Lost.Before(t.newestAt) {
		t.fail("%v after that of %s", c, t.newest.Format(time.TimeOnly))
	}
	t.newest, t.newestAt = c.Nominal, t.world.Now
}

// passedByLost reports whether the status has passed a nominal time, in a write of a memory that was lost since, and no worker has read
// the status after that write.
func (t *Truth) passedByLost(nominal time.Time) bool {
	return !t.world.decidedUntil().Before(nominal) && t.before.Before(t.Lost) && t.inventory.Before(t.passed)
}

// overtaken: a memory that was lost has decided to pass nominal times, and the next memory has created Jobs for them before that was written.
func (t *Truth) overtaken() {
	for name, j := range t.world.Jobs {
		if t.before.Before(t.Lost) && t.made[name] > 0 && j.Nominal.After(t.until) && !j.Nominal.After(t.world.decidedUntil()) {
			t.vain[name] = true
		}
	}
}

func (t *Truth) listed(j *Job) bool {
	for _, ref := range t.world.Object.Status.Active {
		if ref.UID == j.UID {
			return true
		}
	}
	return false
}

// begin returns the time from which the ScheduledJob is responsible for nominal times.
func (t *Truth) begin() time.Time {
	begin := t.world.Object.Created.Truncate(time.Second)
	if after := t.world.Object.StartAfter; !after.IsZero() {
		return after
	}
	if at := t.world.Object.RunAt; !at.IsZero() && !at.After(begin) && !t.Edited {
		return at.Add(-time.Second)
	}
	return begin
}

// received records what a worker passes to the function.
func (t *Truth) received(batch []events.Event) {
	for _, e := range batch {
		switch e := e.(type) {
		case events.ScheduleListed:
			if e.ID == t.asked {
				t.listedAt = t.world.Now
			}
		case events.RunGone:
			t.outdated = max(t.outdated, e.Run.Version)
		case events.RunObserved:
			t.seen[e.Run.Name] = t.seen[e.Run.Name] || e.Run.Version > t.outdated
		}
		if told, ok := e.(events.Announced); ok && !t.taken[told.ID] { // what is told once more says nothing about the bus of today
			t.taken[told.ID] = true
			t.confirmed = t.world.Now
		}
	}
}

// decided returns the verdicts on the ledger and those that were dropped.
func (t *Truth) decided() []events.TickDecided { return t.verdicts(v1alpha1.ScheduledJobStatus{}) }

// Settled reports whether everything due is decided and no Job is unfinished.
func (t *Truth) Settled() bool { return t.Decided() && len(t.world.Object.Status.Active) == 0 }

// Decided reports whether everything due is decided, up to now or to Until.
func (t *Truth) Decided() bool {
	w := t.world
	upTo := t.Until
	if upTo.IsZero() {
		upTo = w.Now
	}
	last, ok := w.Times().Prev(upTo.Add(-time.Duration(w.Object.JitterSeconds) * time.Second))
	st := w.Object.Status
	return st.DecidedUntil != nil && (!ok || !last.After(t.begin()) || !st.DecidedUntil.Time.Before(last))
}

// Check compares the status and the ledger with what happened.
func (t *Truth) Check() error {
	w, st := t.world, t.world.Object.Status
	if !t.Settled() {
		t.fail("decided until %v, active %v", st.DecidedUntil, st.Active)
		return t.broken
	}
	t.onLedger(st)
	t.users.check(t.fail)
	if told, all := len(t.decided()), len(t.verdicts(st)); told < all {
		t.fail("%d of %d verdicts are on the ledger or dropped", told, all)
	}
	var missed int64
	started := map[string]bool{}
	for _, v := range t.decided() {
		switch v.Verdict {
		case events.Started:
			started[v.Job.Name] = true
		case events.Skipped:
		default:
			missed += v.Count
		}
	}
	for name := range t.made {
		if !started[name] && !t.vain[name] {
			t.fail("%s was created without a verdict", name)
		}
	}
	for name := range started {
		if t.made[name] == 0 {
			t.fail("%s has started and was never created", name)
		}
	}
	if st.Missed != missed {
		t.fail("missed=%d, but %d are on the ledger", st.Missed, missed)
	}
	t.counts(st, started, missed)
	t.lastRun(st)
	kept := map[events.RunResult]int32{}
	for name, j := range w.Jobs {
		if t.vain[name] && !started[name] && j.Result == "" && !j.Deleting {
			t.fail("%s still runs, though its verdict is another", name)
		}
		kept[j.Result]++
	}
	if kept[events.RunComplete] > w.Object.SuccessfulJobs || kept[events.RunFailed] > w.Object.FailedJobs {
		t.fail("%v Jobs are kept", kept)
	}
	return t.broken
}
