package scheduledjob

import (
	"slices"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

const (
	// hearing is how long a status that is full of verdicts which nobody has been told waits for the bus to confirm one: a
	// server that restarts, or a lost leader, takes ten seconds. After that the oldest make room, since nothing may wait for
	// the stream of public events for ever.
	hearing = time.Minute
	// untried is a pause after which nobody is known to have tried: the engine repeats an announcement once a minute at least,
	// so all reconcilers were away. That says nothing about the bus.
	untried = 2 * hearing
)

// Deaf is the time in which announcements were tried and the bus confirmed none of them.
type Deaf struct {
	_ struct{} `cbor:",toarray"`
	// Since is when it began, and Last when somebody has tried the latest time; both are zero while nothing waits.
	Since, Last time.Time
}

// since is the time up to the latest try before now: what that has come to is known, unlike what the next one will. A
// confirmation ends it: see observe.
func (d Deaf) since(waiting bool, now time.Time) Deaf {
	switch {
	case !waiting:
		return Deaf{}
	case d.Since.IsZero() || now.Sub(d.Last) > untried:
		return Deaf{Since: now, Last: now}
	}
	return d
}

// trying notes that it is tried now.
func (d Deaf) trying(now time.Time) Deaf {
	if !d.Since.IsZero() {
		d.Last = now
	}
	return d
}

// hopeless says that waiting on is no use.
func (d Deaf) hopeless() bool { return d.Last.Sub(d.Since) >= hearing }

// room says that the status can take one more verdict, beside so many that nobody has been told.
func (b *book) room(untold int) bool { return untold < v1alpha1.RecentVerdicts || b.Deaf.hopeless() }

// makeRoom takes verdicts out of the status until it holds no more than it may: the oldest that have been announced, and if
// there are none, the oldest of all. Those are a gap on the ledger, and the write says so.
func (b *book) makeRoom() {
	st := &b.status
	for len(st.Recent) > v1alpha1.RecentVerdicts {
		oldest := slices.IndexFunc(st.Recent, func(v v1alpha1.TickVerdict) bool {
			return v.Announced || b.Told[events.PublicID(public(b.Object, v))]
		})
		if oldest < 0 {
			oldest = 0
			b.untold = append(b.untold, public(b.Object, st.Recent[0]))
		}
		st.Recent = slices.Delete(st.Recent, oldest, oldest+1)
	}
}
