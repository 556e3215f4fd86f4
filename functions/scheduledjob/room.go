package scheduledjob

import (
	"slices"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// unavailableAfter is the number of refused announcements in a row after which waiting longer is useless. A server that restarts,
// or a lost leader, takes ten seconds, and between this many refusals lie 1 + 2 + 4 + 8 + 16 + 32 s (backoff.API). After that the
// oldest verdicts make room, since nothing may wait for the stream of public events for ever. While no reconciler runs, no
// announcement is refused, so an outage of reconcilers does not count.
const unavailableAfter = 7

// busUnavailable reports whether the bus has confirmed nothing for about a minute in which announcements were tried.
func (s State) busUnavailable() bool {
	return s.Waits[effect.KindAnnounce].Count >= unavailableAfter
}

// room reports whether the status can take one more verdict, in addition to this many that have not been announced.
func (b *book) room(unannounced int) bool {
	return unannounced < v1alpha1.RecentVerdicts || b.busUnavailable()
}

// makeRoom removes verdicts from the status until it has no more than it may: the oldest that have been announced, and if there
// are none, the oldest of all. The latter leave a gap in the announcements, and the write reports it.
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
