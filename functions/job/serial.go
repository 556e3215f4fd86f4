package job

import (
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/pod"
)

// serialOf returns the serial under which a Pod is tracked. The Pod may have lost its annotation, and an orphan's may be that of
// another Job. The second of two Pods with one serial has to get another. A Pod that is not in the State is tracked by its serial
// only if its name shows the same one. Otherwise a late observation of a Pod that was counted under another serial would make it
// a new Pod.
func (s *State) serialOf(p events.Pod) (serial int, known bool) {
	r, ok := s.Pods[p.Serial]
	settled := !ok && s.Settled.Has(p.Serial)
	if ok && (r.Pod.UID == p.UID || r.intended() && !p.Orphan && r.Pod.Name == p.Name) {
		return p.Serial, true
	}
	if serial, known := s.rowOf(p.UID); known {
		return serial, true
	}
	if settled && !p.Held && !p.Orphan {
		return p.Serial, true
	}
	taken := ok && !r.Gone && r.Pod.Name != p.Name // of two with one name the newer replaces the older
	own, stamp := s.named(p), s.Unplaced[p.UID]
	switch {
	case p.Serial == events.NoSerial, p.Orphan, taken:
		return p.Serial, false
	case stamp.Pod.UID == p.UID && stamp.Serial == p.Serial, own == p.Serial:
		return p.Serial, true
	case own != events.NoSerial && !s.Settled.Has(own): // it has not been counted: it is no stray of a serial that a user gave it
		return p.Serial, false
	}
	return p.Serial, ok || settled
}

// named returns the serial under which this function created the Pod, events.NoSerial if it did not. The name proves it, because
// annotations can be edited and names cannot. A serial that has not been given out yet needs both to agree: a user may have
// chosen the name by chance.
func (s State) named(p events.Pod) int {
	serial, ok := pod.SerialIn(p.Name, s.Job.Name, s.Job.UID)
	if !ok || serial >= s.Next && serial != p.Serial {
		return events.NoSerial
	}
	return serial
}

// serialFor returns the serial for a Pod that waits for one. It is the serial under which this function created the Pod, if there
// is one, because observations with that serial may still arrive; otherwise the next. A row that is only intended under its name
// waits for this very Pod: no other can be created as long as it exists.
func (s State) serialFor(p events.Pod) int {
	own := s.named(p)
	r, used := s.Pods[own]
	used = used && (!r.intended() || r.Pod.Name != p.Name)
	for _, u := range s.Unplaced {
		used = used || u.Serial == own
	}
	if own == events.NoSerial || used || s.Settled.Has(own) {
		return s.Next
	}
	return own
}

// usedUp reports whether the Pod proves that a serial which is about to be used is over. No inventory lists a Pod that has ended
// and is not held. So after a loss of the annotation with the next serial, such a Pod may have a serial that is given out again.
func (s State) usedUp(p events.Pod) bool {
	r, ok := s.Pods[p.Serial]
	return ok && r.intended() && p.Terminal() && !p.Held
}

// lossGap returns how many serials are skipped after a loss of the state: more than can have been given out since the last status
// write, whose annotation has the next one. No more than MaxPodChanges Pods are intended and not yet observed.
func (s State) lossGap() int { return 2 * s.limits.MaxPodChanges }
