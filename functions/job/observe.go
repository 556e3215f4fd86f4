package job

import (
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// observe folds an event into the state. Until the inventory that this state requested has arrived, it remembers only names, and
// what is to be announced: a start or an end is true whatever else the inventory shows.
func observe(s State, e events.Event) State {
	s.Learn(e)
	switch e := e.(type) { // known or not
	case events.Announced:
		if s.Outbox.Confirmed(e.ID) {
			s.accept(effect.KindAnnounce, "")
		}
		return s
	case events.EffectRefused:
		switch e.Effect {
		case effect.SaveState:
			return s.shrink(e)
		case effect.KindAnnounce:
			s.Waits.Refuse(e)
			return s
		}
	case events.JobListed:
		if !s.Known {
			return takeInventory(s, e)
		}
		return compare(s, events.JobPartListed{JobListed: e})
	case events.JobPartListed:
		if s.Known && e.Job != nil && s.overtaken(*e.Job) {
			s.Outbox.Note(*e.Job)
			return s.lookAgain()
		}
		if s.Known {
			return compare(s, e)
		}
	}
	if !s.Known {
		return observeUnsynced(s, e)
	}
	switch e := e.(type) {
	case events.JobObserved:
		if s.overtaken(e.Job) {
			s.Outbox.Note(e.Job)
			return s.lookAgain()
		}
		return seeJob(s, e.Job)
	case events.JobGone:
		s.Gone = true
	case events.PodObserved:
		if s.new(e.Pod) || s.usedUp(e.Pod) {
			return seePod(s, e.Pod)
		}
		if e.Pod.Version < s.ListVersions.Of(e.Pod.UID) { // the same again proves nothing
			e.Pod.Labels = judged(s.Job, e.Pod)
			s.leftBefore(e.Pod)
		}
	case events.PodGone:
		return missPod(s, e.Pod)
	case events.EffectRefused:
		return recordRejection(s, e)
	case events.ParametersObserved:
		return seeParameters(s, e)
	case events.TimerFired: // only wakes
		if e.Name == events.Unread && !s.Job.Foreign {
			s.Missed(e)
		}
	}
	return s
}

// observeUnsynced handles events before the inventory: it notes whether one needs it. The end of a Job, the deletion of anything
// and a Pod that ended without the finalizer need none.
func observeUnsynced(s State, e events.Event) State {
	switch e := e.(type) {
	case events.JobObserved:
		s.Outbox.Note(e.Job)
		s.NeedsSync = s.NeedsSync || !e.Job.Foreign && (!e.Job.Finished() || s.expires(e.Job))
		if s.Overgrown.Count > 0 && e.Job.Version > s.Job.Version {
			if e.Job.Deleting && !s.Job.Deleting {
				s.noteEnd()
			}
			s.Job = e.Job
		}
	case events.JobGone:
		if s.Overgrown.Count > 0 && !s.Gone {
			s.noteEnd()
			s.Gone = true
		}
	case events.PodObserved:
		s.NeedsSync = s.NeedsSync || e.Pod.Held || !e.Pod.Terminal()
	case events.JobPartListed: // a Job so large has work to do
		s.NeedsSync = true
		if e.Job != nil {
			s.Outbox.Note(*e.Job)
		}
	case events.TimerFired:
		s.NeedsSync = true
	case events.EffectRefused:
		if e.Effect == effect.KindTakeInventory || s.Overgrown.Count > 0 && e.Effect == effect.KindWriteJobStatus {
			s.Waits.Refuse(e)
		}
	}
	return s
}

// overtaken reports whether an observation shows that another worker has written the first status, with more than this State knows: this
// State took its inventory without a list of Pods, because nothing had touched the Job, and it has not found all Pods again that the lost
// one may have created. The status may list one of these, and it would count as no longer held.
func (s State) overtaken(j events.Job) bool {
	if !s.Job.Untouched() || j.Version <= s.Job.Version || s.Gone {
		return false
	}
	more, missing := j.Status.Succeeded+j.Status.Failed > 0, false // without more, this State may have written it
	for uid := range listed(j.Status) {
		_, known := s.rowOf(uid)
		more = more || !known
	}
	for _, r := range s.Pods {
		missing = missing || r.intended() && s.findable(create(s.Job, r.Pod))
	}
	return more && missing
}

func seeJob(s State, j events.Job) State {
	s.Outbox.Note(j)
	if s.Gone || j.Version <= s.Job.Version { // JobGone is final
		return s
	}
	if j.Options.Parameters != s.Job.Options.Parameters {
		s.Parameters = 0
	}
	if !s.piecemeal() || !j.Deleting {
		s.Overgrown = Overgrown{} // the state as it has grown since its inventory has been saved
	}
	s.Job, s.Next = j, max(s.Next, j.NextSerial)
	s.accept(effect.KindWriteJobStatus, "")
	return s
}

// seePod folds an observation of a Pod that is not settled yet, if it is the newest.
func seePod(s State, p events.Pod) State {
	p.Labels = judged(s.Job, p)
	if u, ok := s.Unplaced[p.UID]; ok && p.Version <= u.Pod.Version || p.Version < s.Kept[p.UID].Version {
		s.leftBefore(p)
		return s
	}
	if _, kept := s.Kept[p.UID]; kept && p.Held { // it has been counted, perhaps by a state that is lost
		s.setAside(p, true)
		return s
	}
	serial, known := s.serialOf(p)
	if _, tracked := s.Pods[serial]; !known || !tracked && !mine(s.Job, p) {
		s.setAside(p, false)
		return s
	}
	s.placed(p.UID, serial)
	unstamped := p.Serial != serial
	p.Serial = serial
	r, ok := s.Pods[serial]
	switch {
	case !ok && s.Settled.Has(p.Serial):
		s.setAside(p, true)
		return s
	case !ok:
		if s.Next = max(s.Next, p.Serial+1); s.full() {
			return s
		}
	case r.Gone && r.Pod.Name != p.Name:
		s.setAside(p, true) // the serial is over, and the observation may be older than this Pod's own serial
		return s
	case p.Version <= r.Pod.Version, r.Gone && r.Pod.UID == p.UID:
		s.noteFailure(p, r)
		return s
	case r.intended():
		s.allowMore(s.limits.MaxPodChanges)
	case r.Pod.UID != p.UID: // a user or another controller created a Pod of the same name after the Job's was gone
		s.ended(r)
		r = Row{}
	}
	if r.Pod.Held && !p.Held {
		s.accept(effect.KindRemoveFinalizer, p.Name)
	}
	if !r.Pod.Deleting && p.Deleting {
		s.accept(effect.KindDeletePod, p.Name)
	}
	s.noteFailure(p, r)
	r.Pod, r.Withdrawn, r.Unstamped = s.withEnd(p, r.Pod), false, unstamped
	s.put(p.Serial, r)
	return s
}

// setAside remembers a Pod that has no row as long as it needs a serial. It remembers a stray as long as the stray is held or
// runs, since the worker that removed its finalizer may have died before it deleted it. A Pod of the Job that has ended and is not
// held was counted before.
func (s *State) setAside(p events.Pod, stray bool) {
	u, ok := s.Unplaced[p.UID]
	s.keep(p)
	switch {
	case !p.Held && (p.Terminal() && (stray || !p.Orphan) || stray && p.Deleting):
		s.placed(p.UID, events.NoSerial)
	case !ok && s.full():
	default:
		if !ok {
			u.Serial = events.NoSerial
		}
		s.Unplaced[p.UID] = Unplaced{Pod: s.withEnd(p, u.Pod), Serial: u.Serial, Stray: stray}
	}
}

// missPod notes that a Pod is gone. A GET that found nothing has no UID if the state had none.
func missPod(s State, p events.Pod) State {
	r, ok := s.Pods[p.Serial]
	ok = ok && p.Name == r.Pod.Name // an annotation can be edited, and an orphan's may be that of another Job
	switch {
	case ok && r.intended() && p.UID != "":
		// It was created and removed before it was observed. Its serial must not be used again: that would run it twice.
		s.put(p.Serial, Row{Pod: p, Gone: true})
		s.leaves(p)
		return s
	case ok && r.intended() && r.Withdrawn:
		delete(s.Pods, p.Serial)
	}
	if p.UID == "" {
		return s
	}
	s.leaves(p)
	s.placed(p.UID, events.NoSerial)
	if serial, known := s.serialOf(p); known && s.Pods[serial].Pod.UID == p.UID {
		s.change(serial, func(r *Row) {
			if r.Gone = true; s.limits.AnnouncePods && p.End != nil { // only this observation shows how a deleted Pod ended
				r.Pod.Finished, r.Pod.End = p.Finished, p.End
			}
		})
	}
	return s
}

// recordRejection remembers a refusal. If a stranger has the name, the name and its serial are given up. Anything else is tried
// again later under the same name, because another worker may have succeeded with it.
func recordRejection(s State, e events.EffectRefused) State {
	r, ok := s.Pods[e.Serial]
	if e.Effect == effect.KindCreatePod && e.Reason == "AlreadyExists" {
		if ok && r.intended() {
			delete(s.Pods, e.Serial)
		}
		return s
	}
	if s.Waits.Refuse(e) && e.Effect == effect.KindCreatePod {
		s.Allowed = 1
		if e.Reason == effect.InvalidParameters {
			s.Parameters = 0 // read the ConfigMap again
		}
	}
	return s
}
