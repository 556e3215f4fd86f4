package schedules

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// startByHand is a user who starts a Job: for now, or for a nominal time that was decided and had no Job.
func (w *World) startByHand() {
	d := w.Object.Status.DecidedUntil
	if d == nil || w.random.IntN(2) == 0 {
		name := fmt.Sprint("urgent-", len(w.truth.users.uids))
		w.AddJob(name, true)
		w.truth.users.start(name)
		w.log("a user starts %s", name)
		return
	}
	nominal, ok := w.Times().Prev(d.Add(-time.Duration(w.random.IntN(600)) * time.Second))
	job := w.Object.Name + "-" + events.NominalHash(nominal)
	if !ok || w.truth.users.started(job) || w.truth.made[job] > 0 {
		return
	}
	if name, made := w.Backfill(nominal); made {
		w.truth.users.start(name)
		w.log("a user starts %s for %s", name, nominal.Format(time.TimeOnly))
	}
}

// byHand records the Jobs that users have started.
type byHand struct {
	world *API
	uids  map[string]types.UID
	// doubt holds those that had ended before a status listed them. If their facts arrived out of order, or the memory of them
	// was lost, they have no verdict and are not counted.
	doubt map[string]bool
}

func newByHand(a *API) *byHand {
	return &byHand{world: a, uids: map[string]types.UID{}, doubt: map[string]bool{}}
}

func ofUser(v events.TickDecided) bool { return v.Verdict == events.Started && v.Reason != "" }

func (b *byHand) start(name string) {
	b.uids[name] = b.world.Jobs[name].UID
}

func (b *byHand) ended(name string) {
	if b.unseen(name) {
		b.doubt[name] = true
	}
}

// started reports whether a user has started the Job. The reconciler may still create the Job of an earlier decision beside it.
func (b *byHand) started(name string) bool {
	_, is := b.uids[name]
	return is
}

// unseen reports whether a user has started the Job and no status has listed it.
func (b *byHand) unseen(name string) bool {
	return b.started(name) && b.told()[name] == 0
}

// told returns the number of verdicts on each: on the ledger, dropped, or in the status on their way there.
func (b *byHand) told() map[string]int {
	jobs := map[string]map[string]bool{}
	note := func(name, id string) {
		if jobs[name] == nil {
			jobs[name] = map[string]bool{}
		}
		jobs[name][id] = true
	}
	for _, all := range [][]events.TickDecided{b.world.Ledger, b.world.Unannounced} {
		for _, v := range all {
			if ofUser(v) {
				note(v.Job.Name, string(v.Job.UID)+v.String())
			}
		}
	}
	for _, v := range b.world.Object.Status.Recent {
		if v.Verdict == string(events.Started) && v.Reason != "" {
			tick := events.TickDecided{Verdict: events.Started, Reason: v.Reason, Nominal: v.Time.UTC()}
			note(v.JobName, string(v.JobUID)+tick.String())
		}
	}
	count := map[string]int{}
	for name, ids := range jobs {
		count[name] = len(ids)
	}
	return count
}

// check checks that each Job that a user has started has one such verdict, and no other Job has one.
func (b *byHand) check(fail func(string, ...any)) {
	told := b.told()
	for name := range b.uids {
		if n := told[name]; n > 1 || n == 0 && !b.doubt[name] {
			fail("%s was started by a user and has %d verdicts", name, n)
		}
	}
	for name := range told {
		if !b.started(name) {
			fail("%s has the verdict of a Job that a user has started, though no user has", name)
		}
	}
}
