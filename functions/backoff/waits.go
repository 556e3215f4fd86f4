package backoff

import (
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Waits are the effects that the API server refuses just now, or once did: by their kind, because a quota that refuses one
// Pod refuses the next; or by kind and name, where a refusal says nothing of the next object.
type Waits map[string]Wait

// Wait is how long what was refused rests.
type Wait struct {
	// Count is how often it was refused in a row, 0 where it is accepted again.
	Count int
	Until time.Time
	// Last is when the last refusal that we know of happened: the same one that comes again changes nothing.
	Last    time.Time
	Reason  string
	Message string
}

// ObjectsMax is of how many objects one kind of effect rests separately. Where more are refused, it is the kind that is.
const ObjectsMax = 100

// separate are the kinds of effects that are each about one object which is there: a webhook may refuse to let one Pod go and
// nothing else.
var separate = map[string]bool{
	effect.KindRemoveFinalizer: true,
	effect.KindAddFinalizer:    true,
	effect.KindAdoptPod:        true,
	effect.KindReleasePod:      true,
	effect.KindDeletePod:       true,
	effect.KindDeleteRun:       true,
}

// between stands between kind and name. No kind has one.
const between = " "

// key is what a refusal tells of.
func key(kind, name string) string {
	if name == "" || !separate[kind] {
		return kind
	}
	return kind + between + name
}

// Refuse notes a refusal, and says whether it is news. Of several that come at once only the first makes the wait longer,
// since they are one attempt.
func (w *Waits) Refuse(e events.EffectRefused) (news bool) {
	k := key(e.Effect, e.Name)
	if _, known := (*w)[k]; k != e.Effect && !known && w.Objects(e.Effect) >= ObjectsMax {
		k = e.Effect
	}
	wait := (*w)[k]
	if e.At.Equal(wait.Last) { // not "after": the clock of whoever was refused now may be behind
		return false
	}
	wait.Last = e.At
	if !e.At.Before(wait.Until) {
		wait.Count++
		wait.Until, wait.Reason, wait.Message = e.At.Add(API.Delay(wait.Count)), e.Reason, e.Message
		if k != e.Effect { // those that were refused together are tried again together, by one timer
			wait.Until = wait.Until.Truncate(API.Delay(wait.Count) / 8)
		}
	}
	if *w == nil {
		*w = Waits{}
	}
	(*w)[k] = wait
	return true
}

// Objects is of how many objects the kind rests separately.
func (w Waits) Objects(kind string) (n int) {
	for k := range w {
		if strings.HasPrefix(k, kind+between) {
			n++
		}
	}
	return n
}

// Accept notes that an effect of the kind was accepted, and with it all of its kind, except for other objects that rest
// separately. The name is that of the object, or "".
func (w Waits) Accept(kind, name string) {
	if k := key(kind, name); k != kind {
		delete(w, k)
	}
	if wait, ok := w[kind]; ok {
		w[kind] = Wait{Last: wait.Last}
	}
}

// Kinds are those that rest as a whole, or once did.
func (w Waits) Kinds() (kinds []string) {
	for k := range w {
		if !strings.Contains(k, between) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Forget drops the objects of which nothing is wanted any more.
func (w Waits) Forget(wanted []effect.Effect) {
	if len(w) == 0 {
		return
	}
	wants := make(map[string]bool, len(wanted))
	for _, e := range wanted {
		wants[key(e.Kind(), effect.Subject(e))] = true
	}
	for k := range w {
		if strings.Contains(k, between) && !wants[k] {
			delete(w, k)
		}
	}
}

// Blocked says that the effect rests at the given time.
func (w Waits) Blocked(e effect.Effect, now time.Time) bool {
	return now.Before(w[e.Kind()].Until) || now.Before(w[key(e.Kind(), effect.Subject(e))].Until)
}

// End is when the first of what rests at the given time may be tried again; zero where nothing rests.
func (w Waits) End(now time.Time) (end time.Time) {
	for _, wait := range w {
		if now.Before(wait.Until) && (end.IsZero() || wait.Until.Before(end)) {
			end = wait.Until
		}
	}
	return end
}
