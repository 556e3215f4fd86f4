package backoff

import (
	"time"

	"github.com/jobstream/jobstream/events"
)

// Waits are the kinds of effects that the API server refuses just now, or once did.
type Waits map[string]Wait

// Wait is how long a kind of effect that was refused rests.
type Wait struct {
	// Count is how often it was refused in a row, 0 where it is accepted again.
	Count int
	Until time.Time
	// Last is when the last refusal that we know of happened: the same one that comes again changes nothing.
	Last    time.Time
	Reason  string
	Message string
}

// Refuse notes a refusal, and says whether it is news. Of several that come at once only the first makes the wait longer,
// since they are one attempt.
func (w *Waits) Refuse(e events.EffectRefused) (news bool) {
	wait := (*w)[e.Effect]
	if e.At.Equal(wait.Last) { // not "after": the clock of whoever was refused now may be behind
		return false
	}
	wait.Last = e.At
	if !e.At.Before(wait.Until) {
		wait.Count++
		wait.Until, wait.Reason, wait.Message = e.At.Add(API.Delay(wait.Count)), e.Reason, e.Message
	}
	if *w == nil {
		*w = Waits{}
	}
	(*w)[e.Effect] = wait
	return true
}

// Accept notes that effects of the kind are accepted.
func (w Waits) Accept(kind string) {
	if wait, ok := w[kind]; ok {
		w[kind] = Wait{Last: wait.Last}
	}
}

// Blocked says that effects of the kind rest at the given time.
func (w Waits) Blocked(kind string, now time.Time) bool { return now.Before(w[kind].Until) }

// End is when the first kind of effect that rests at the given time may be tried again; zero where none rests.
func (w Waits) End(now time.Time) (end time.Time) {
	for _, wait := range w {
		if now.Before(wait.Until) && (end.IsZero() || wait.Until.Before(end)) {
			end = wait.Until
		}
	}
	return end
}
