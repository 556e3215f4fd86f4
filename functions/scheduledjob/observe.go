package scheduledjob

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/inventory"
)

// ahead is how far a trigger's clock may be ahead of this reconciler's: "jobstream doctor" accepts half a minute between either of
// them and the servers, in either direction.
const ahead = time.Minute

// observe folds an event into the state. Until the inventory that this state requested has arrived, it decides nothing about
// Jobs.
func observe(s State, e events.Event) State {
	s.Learn(e)
	switch e := e.(type) { // known or not
	case events.ScheduleDue:
		s.Noticed = later(s.Noticed, e.Nominal.UTC())
	case events.TimerFired:
		if e.Name == events.Unread { // the message may have been a due notice, which the trigger does not repeat
			s.Noticed = later(s.Noticed, e.At.Add(ahead).UTC())
		}
	case events.Announced:
		if s.Acked == nil {
			s.Acked = map[string]bool{}
		}
		if !s.Acked[e.ID] {
			s.Waits.Accept(effect.KindAnnounce, "")
		}
		s.Acked[e.ID] = true
	}
	if no, ok := e.(events.EffectRefused); ok && no.Effect == effect.SaveState {
		return shrink(s, no)
	}
	if list, ok := e.(events.ScheduleListed); ok {
		if !s.Known {
			return takeInventory(s, list)
		}
		return compare(s, list)
	}
	if !s.Known {
		return observeUnsynced(s, e)
	}
	switch e := e.(type) {
	case events.ScheduledJobObserved:
		return see(s, e.ScheduledJob)
	case events.ScheduledJobGone:
		s.Gone = true
	case events.RunObserved:
		return seeRun(s, e.Run)
	case events.RunGone:
		return missRun(s, e.Run)
	case events.RunMissing:
		for i, d := range s.Due {
			s.Due[i].Absent = d.Absent || d.Search != "" && d.Search == e.ID && childName(s.Object.Name, d.Nominal) == e.Name
		}
	case events.EffectRefused:
		return recordRejection(s, e)
	case events.TimerFired: // only wakes
		if e.Name == events.Unread {
			s.Missed(e)
		}
	case events.ScheduleDue, events.Announced: // only wake
	}
	return s
}

// observeUnsynced handles events before the inventory: it notes whether one needs it. A new ScheduledJob needs none before its
// first time comes, because it has no Jobs. So thousands can be created without a list of the cluster.
func observeUnsynced(s State, e events.Event) State {
	switch e := e.(type) {
	case events.ScheduledJobObserved:
		s = see(s, e.ScheduledJob)
		s.NeedsSync = s.NeedsSync || !e.ScheduledJob.Deleting && !over(e.ScheduledJob) && !untouched(e.ScheduledJob)
	case events.ScheduledJobGone:
		s.Object = events.ScheduledJob{}
	case events.RunObserved:
		s.NeedsSync = true
		if old, ok := s.Runs[e.Run.UID]; !ok || !old.Gone && old.Run.Version < e.Run.Version {
			s.put(Row{Run: e.Run})
		}
	case events.RunGone:
		s.NeedsSync = true
		s.ListVersion = max(s.ListVersion, e.Run.Version)
		s.put(Row{Run: e.Run, Gone: true})
	case events.ScheduleDue, events.TimerFired, events.RunMissing:
		s.NeedsSync = true
	case events.EffectRefused:
		s.Waits.Refuse(e)
	}
	return s
}

// untouched reports whether nothing has happened since the first status was written, or that none has been written.
func untouched(j events.ScheduledJob) bool {
	st := j.Status
	if st.DecidedUntil == nil {
		return true
	}
	return st.DecidedUntil.UTC().Equal(Beginning(j)) && len(st.Active)+len(st.Recent) == 0 && st.ObservedGeneration == j.Generation
}

// takeInventory fills an empty State from a snapshot. A snapshot that another worker requested, or this function before it lost
// its state, proves nothing and is ignored.
func takeInventory(s State, list events.ScheduleListed) State {
	if !s.Requested(list.ID) {
		s.NeedsSync = true
		return s
	}
	s.Known, s.ListVersion = true, max(s.ListVersion, list.Version)
	if list.ScheduledJob == nil {
		s.Gone = true
		return s
	}
	s = see(s, *list.ScheduledJob)
	observed := s.Runs
	s.Runs = map[types.UID]Row{}
	for _, r := range list.Runs {
		r = s.own(r)
		s.put(Row{Run: r, New: AwaitsVerdict(&s.Object.Status, r), Again: s.AskedAt()}) // perhaps by a lost state
	}
	for uid, r := range observed { // while the list was on its way
		old, listed := s.Runs[uid]
		ended := r.Gone && !listed && s.counts(uid) // how it ended, the list does not show
		if ended || r.Run.Version > max(list.Version, old.Run.Version) {
			r.Run = s.own(r.Run)
			r.New = old.New || !listed && byHand(r.Run)
			s.put(r)
		}
	}
	return s
}

func (s *State) put(r Row) {
	if s.Runs == nil {
		s.Runs = map[types.UID]Row{}
	}
	s.Runs[r.Run.UID] = r
}

// own clears the nominal time of a Job that does not have the name for it: a user has copied the Job, annotations and all. If the
// Job has lost its nominal time and has the name of an intended one, own restores the time.
func (s State) own(r events.Run) events.Run {
	for _, d := range s.Due {
		if d.Intended && childName(s.Object.Name, d.Nominal) == r.Name {
			r.Nominal = d.Nominal
		}
	}
	if !r.Nominal.IsZero() && r.Name != childName(s.Object.Name, r.Nominal) {
		r.Nominal = time.Time{}
	}
	return r
}

// compare compares the state with a snapshot. A Job that was last observed at or before its version and is not listed is gone. A
// listed Job that is not in the state exists, unless a later deletion was observed.
func compare(s State, list events.ScheduleListed) State {
	s.Compared(list.ID)
	if list.ScheduledJob != nil {
		s = see(s, *list.ScheduledJob)
	} else if s.Object.Version <= list.SchedulesVersion {
		s.Gone = true
	}
	listed := map[types.UID]bool{}
	for _, r := range list.Runs {
		listed[r.UID] = true
		s = seeRun(s, r)
		if _, known := s.Runs[r.UID]; !known && list.Version >= s.ListVersion {
			r = s.own(r)
			s.put(Row{Run: r, New: AwaitsVerdict(&s.Object.Status, r)})
		}
	}
	for uid, r := range s.Runs {
		if r.Run.Version <= list.Version && !listed[uid] {
			r.Gone, r.Missed = true, false
			s.Runs[uid] = r
		}
	}
	s.ListVersion = max(s.ListVersion, list.Version)
	return s
}

// see folds a newer observation of the ScheduledJob.
func see(s State, j events.ScheduledJob) State {
	if j.Version <= s.Object.Version {
		return s
	}
	s.Object = j
	decided := s.decidedUntil()
	if s.Until.Before(decided) {
		s.Until = decided
	}
	return s
}

func seeRun(s State, r events.Run) State {
	if old, ok := s.Runs[r.UID]; ok {
		r.Manual = old.Run.Manual // whether a user has started a Job does not change
		if r.Nominal.IsZero() {
			r.Nominal = old.Run.Nominal
		}
	}
	r = s.own(r)
	if old, ok := s.Runs[r.UID]; ok {
		if r.Version > old.Run.Version && (!old.Gone || old.Missed) {
			s.Runs[r.UID] = Row{Run: r, New: old.New, Again: old.Again, Gone: old.Gone, Missed: old.Missed && r.Result == ""}
		}
		return s
	}
	if r.Version <= s.ListVersion && !s.awaits(r) {
		return s
	}
	s.put(Row{Run: r, New: byHand(r)})
	s.Waits.Accept(effect.KindCreateJob, "")
	return s
}

// awaits reports whether the Job is an intended one. It may be older than a deletion that was observed.
func (s State) awaits(r events.Run) bool {
	for _, d := range s.Due {
		if d.Intended && d.Nominal.Equal(r.Nominal) {
			return true
		}
	}
	return false
}

// missRun notes that a Job is gone.
func missRun(s State, r events.Run) State {
	s.ListVersion = max(s.ListVersion, r.Version)
	if row, ok := s.Runs[r.UID]; ok {
		if r.Version > row.Run.Version && r.Result != "" {
			row.Run.Result, row.Run.Finished = r.Result, r.Finished // its last observation
		}
		row.Missed = r.Version == 0 && row.Run.Result == "" && (row.Missed || !row.Gone)
		row.Gone = true
		s.Runs[r.UID] = row
	} else if s.awaits(r) { // created and deleted before it was observed
		s.put(Row{Run: r, Gone: true})
	}
	return s
}

// shrink forgets a state that is too large to be saved: the ScheduledJob has tens of thousands of Jobs. The inventory is delayed
// as if it had been refused, ever longer while it brings as many.
func shrink(s State, no events.EffectRefused) State {
	no.Effect = effect.KindTakeInventory
	less := State{Inventory: inventory.Inventory{Name: s.Name, NeedsSync: true}, Waits: s.Waits}
	less.Waits.Refuse(no)
	return less
}

// recordRejection remembers a refusal: the effect is delayed, and the due time whose Job was not created keeps the reason.
func recordRejection(s State, e events.EffectRefused) State {
	s.Waits.Refuse(e)
	for i, d := range s.Due {
		if e.Effect == effect.KindCreateJob && e.Name == childName(s.Object.Name, d.Nominal) && e.At.After(d.RefusedAt) {
			s.Due[i].Refused, s.Due[i].Message, s.Due[i].RefusedAt = e.Reason, e.Message, e.At
		}
	}
	return s
}
