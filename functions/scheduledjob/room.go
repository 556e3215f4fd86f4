package scheduledjob

import (
	"slices"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// unavailableAfter is how many refusals in a row of announcements show that waiting on is no use: a server that restarts, or a lost leader, takes
// ten seconds, and between so many lie 1 + 2 + 4 + 8 + 16 + 32 s (backoff.API). After that the oldest verdicts make room, since nothing
// may wait for the stream of public events for ever. An absence of all reconcilers says nothing about the bus, and refuses nothing.
const unavailableAfter = 7

// busUnavailable reports whether the bus has confirmed nothing for about a minute in which announcements were tried.
func (s State) busUnavailable() bool {
	return s.Waits[effect.KindAnnounce].Count >= unavailableAfter
}

// room says that the status can take one more verdict, beside so many that nobody has been told.
func (b *book) room(unannounced int) bool {
	return unannounced < v1alpha1.RecentVerdicts || b.busUnavailable()
}

// makeRoom takes verdicts out of the status until it holds no more than it may: the oldest that have been announced, and if
// there are none, the oldest of all. Those are a gap on the ledger, and the write says so.
func (b *book) makeRoom() {
	st := &b.status
	for len(st.Recent) > v1alpha1.RecentVerdicts {
		oldest := slices.IndexFunc(st.Recent, func(v v1alpha1.TickVerdict) bool {
			return v.Announced || b.Acked[events.PublicID(public(b.Object, v))]
		})
		if oldest < 0 {
			oldest = 0
			b.dropped = append(b.dropped, public(b.Object, st.Recent[0]))
		}
		st.Recent = slices.Delete(st.Recent, oldest, oldest+1)
	}
}
