package job

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/backoff"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/inventory"
)

// Overgrown is what is left of a state that had become larger than one message on the bus may be. The Job stands still and shows
// a condition. Inventory is taken again with increasing delays, and is forgotten in its turn as long as it is too large.
//
//	too large --> forgotten, condition --1 min, 2 min, … 10 min--> inventory --> it fits: as usual
//	                      ^                                            |
//	                      '----------------- too large ----------------'
type Overgrown struct {
	_ struct{} `cbor:",toarray"`
	// Count is the number of refusals in a row, Last the time of the newest: the same refusal, delivered again, changes nothing.
	Count int
	Last  time.Time
	// Until is when inventory is taken again.
	Until time.Time
	// Message is for users: it names the size and the remedy.
	Message string
}

// piecemeal reports whether the Job is being deleted, or is gone, and its Pods together made the state too large. Their
// finalizers can be removed without knowing all Pods at once: the state has as many as one plan frees, and when these are
// done, inventory shows the next.
func (s State) piecemeal() bool { return s.Overgrown.Count > 0 && (s.Gone || s.Job.Deleting) }

// noteEnd notes that the Job is being deleted, or is gone: the finalizers of its Pods can now be removed, however many there are.
func (s *State) noteEnd() { s.Overgrown.Until = time.Time{} }

// regrow is the delay between inventories: each costs a list of the whole cluster.
var regrow = backoff.Policy{Base: time.Minute, Max: 10 * time.Minute}

// shrink forgets everything except for the last observation of the Job, which gets the condition, and what is to be announced.
func (s State) shrink(e events.EffectRefused) State {
	o := s.Overgrown
	if e.At.Equal(o.Last) {
		return s
	}
	o.Count++
	o.Last, o.Until, o.Message = e.At, e.At.Add(regrow.Delay(o.Count)), e.Message
	return State{Inventory: inventory.Inventory{Name: s.Name, NeedsSync: true}, Job: s.Job, Gone: s.Gone, Outbox: s.Outbox, Pacing: Pacing{Overgrown: o}, limits: s.limits}
}

// standStill waits for the time of the next inventory. Nothing is counted meanwhile: a status write changes only the condition.
func standStill(s State, now time.Time, at *effect.Wake) []effect.Effect {
	at.By(s.Overgrown.Until)
	j := s.Job
	if j.Version == 0 || j.Foreign || j.Deleting || j.Finished() || s.Gone {
		return nil
	}
	want := *j.Status.DeepCopy()
	refusal(&want, effect.StateTooLarge, "what has to be remembered of this Job's Pods is too large, nothing is done for them until it fits: "+
		"let there be fewer Pods at once, or delete those that others have made ("+s.Overgrown.Message+")", now)
	if equality.Semantic.DeepEqual(want, j.Status) {
		return nil
	}
	return []effect.Effect{effect.WriteJobStatus{Job: j.Name, Version: j.Version, Status: want, NextSerial: j.NextSerial, Backoff: j.Backoff,
		LastFailure: j.LastFailure, FailedIndexExits: j.FailedIndexExits, Reports: reports(j, want)}}
}
