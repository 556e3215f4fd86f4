package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
)

// Overgrown is what is left of a memory that had become larger than one message on the bus may be: the Job stands still, says
// so, and takes inventory again now and then, which is forgotten in its turn as long as it is too large.
//
//	too large --> forgotten, condition --1 min, 2 min, … 10 min--> inventory --> it fits: as ever
//	                      ^                                            |
//	                      '----------------- too large ----------------'
type Overgrown struct {
	_ struct{} `cbor:",toarray"`
	// Count is how often in a row, Last when: the same refusal that comes again changes nothing.
	Count int
	Last  time.Time
	// Until is when inventory is taken again.
	Until time.Time
	// Message is for people: it names the size and the remedy.
	Message string
}

// piecemeal says that the Job goes, or has gone, and had Pods that are too large a memory together. To let them go nothing has to be
// known of all at once: so many are remembered as one plan releases, and when these are free, inventory shows the next.
func (s State) piecemeal() bool { return s.Overgrown.Count > 0 && (s.Gone || s.Job.Deleting) }

// goes notes that the Job goes, or has gone: its Pods can be let go now, however many there are.
func (s *State) goes() { s.Overgrown.Until = time.Time{} }

// regrow is how long inventory rests: each costs a list of the whole cluster.
var regrow = backoff.Policy{Base: time.Minute, Max: 10 * time.Minute}

// shrink forgets everything but the last observation of the Job, to which the condition is added, and what is to be announced.
func (s State) shrink(e events.EffectRefused) State {
	o := s.Overgrown
	if e.At.Equal(o.Last) {
		return s
	}
	o.Count++
	o.Last, o.Until, o.Message = e.At, e.At.Add(regrow.Delay(o.Count)), e.Message
	return State{Name: s.Name, Job: s.Job, Gone: s.Gone, Outbox: s.Outbox, NeedsSync: true, Overgrown: o, limits: s.limits}
}

// lieLow waits for the time of the next inventory. Nothing is counted meanwhile: all that a status write changes is the condition.
func lieLow(s State, now time.Time, at *effect.Wake) []effect.Effect {
	at.By(s.Overgrown.Until)
	j := s.Job
	if j.Version == 0 || j.Foreign || j.Deleting || j.Finished() || s.Gone {
		return nil
	}
	want := *j.Status.DeepCopy()
	refusal(&want, effect.StateTooLarge, "what has to be remembered of this Job's Pods is too large, nothing is done for them until it fits: "+
		"let there be fewer Pods at once, or delete those that others have made ("+s.Overgrown.Message+")", now)
	same := func(a, b batchv1.JobCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Message == b.Message
	}
	if slices.EqualFunc(want.Conditions, j.Status.Conditions, same) {
		return nil
	}
	return []effect.Effect{effect.WriteJobStatus{Job: j.Name, Version: j.Version, Status: want, NextSerial: j.NextSerial, Backoff: j.Backoff,
		Reports: reports(j, want)}}
}
