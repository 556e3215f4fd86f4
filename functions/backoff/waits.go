package backoff

import (
	"strings"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Waits are the effects that the API server refuses now, or refused earlier. The key is the kind, because a quota that refuses
// one Pod refuses the next; or kind and name, if a refusal of one object does not imply that of the next.
type Waits map[string]Wait

// Wait is the delay of a refused effect.
type Wait struct {
	// Count is the number of refusals in a row, 0 once it is accepted again.
	Count int
	Until time.Time
	// Last is the time of the newest known refusal: the same refusal, delivered again, changes nothing.
	Last    time.Time
	Reason  string
	Message string
}

// ObjectsMax is the largest number of objects that one kind of effect delays separately. If more are refused, the whole kind is
// delayed.
const ObjectsMax = 100

// separate are the kinds of effects that are about one existing object: a webhook may refuse to change one Pod and no other.
var separate = map[string]bool{
	effect.KindRemoveFinalizer: true,
	effect.KindAddFinalizer:    true,
	effect.KindAdoptPod:        true,
	effect.KindReleasePod:      true,
	effect.KindDeletePod:       true,
	effect.KindDeleteRun:       true,
}

// between separates kind and name. No kind contains it.
const between = " "

// key returns the key of a refusal.
func key(kind, name string) string {
	if name == "" || !separate[kind] {
		return kind
	}
	return kind + between + name
}

// Refuse notes a refusal, and reports whether it is news. Of several at once only the first increases the delay, since they are
// one attempt.
func (w *Waits) Refuse(e events.EffectRefused) (news bool) {
	k := key(e.Effect, e.Name)
	if _, known := (*w)[k]; k != e.Effect && !known && w.Objects(e.Effect) >= ObjectsMax {
		k = e.Effect
	}
	wait := (*w)[k]
	if e.At.Equal(wait.Last) { // not "after": the clock of the worker that was refused now may be behind
		return false
	}
	wait.Last = e.At
	if !e.At.Before(wait.Until) {
		wait.Count++
		wait.Until, wait.Reason, wait.Message = e.At.Add(API.Delay(wait.Count)), e.Reason, e.Message
		if k != e.Effect { // objects that were refused together are tried again together, by one timer
			wait.Until = wait.Until.Truncate(API.Delay(wait.Count) / 8)
		}
	}
	if *w == nil {
		*w = Waits{}
	}
	(*w)[k] = wait
	return true
}

// Objects returns how many objects the kind delays separately.
func (w Waits) Objects(kind string) (n int) {
	for k := range w {
		if strings.HasPrefix(k, kind+between) {
			n++
		}
	}
	return n
}

// Accept notes that an effect of the kind was accepted, and with it all of its kind, except for other objects that are delayed
// separately. The name is that of the object, or "".
func (w Waits) Accept(kind, name string) {
	if k := key(kind, name); k != kind {
		delete(w, k)
	}
	if wait, ok := w[kind]; ok {
		w[kind] = Wait{Last: wait.Last}
	}
}

// Kinds returns the kinds that are delayed as a whole, or once were.
func (w Waits) Kinds() (kinds []string) {
	for k := range w {
		if !strings.Contains(k, between) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// Forget drops the objects for which no effect is wanted any more.
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

// Blocked reports whether the effect is delayed at the given time.
func (w Waits) Blocked(e effect.Effect, now time.Time) bool {
	return now.Before(w[e.Kind()].Until) || now.Before(w[key(e.Kind(), effect.Subject(e))].Until)
}

// End returns when the first delayed effect may be tried again; zero if none is delayed.
func (w Waits) End(now time.Time) (end time.Time) {
	for _, wait := range w {
		if now.Before(wait.Until) && (end.IsZero() || wait.Until.Before(end)) {
			end = wait.Until
		}
	}
	return end
}
