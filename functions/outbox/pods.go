package outbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// PodNotice is the end of a Pod that is announced until the bus has confirmed it.
type PodNotice struct {
	_      struct{} `cbor:",toarray"`
	Pod    events.Pod
	Result events.PodResult
}

const (
	// MaxPods is the largest number of ends of Pods that wait to be announced, more than the API server removes finalizers
	// in the time that one decision is good for. Each decision announces all of them, so more only accumulate while the bus
	// accepts none, and then the state must not grow without bound.
	MaxPods = 2000
	// DroppedPrefix is the prefix of IDs that report dropped announcements, and of no others.
	DroppedPrefix = "dropped/"
)

// Ended adds the end of a Pod that is no longer tracked, and what it counts as.
func (o *Outbox) Ended(p events.Pod, counts events.PodResult) {
	if len(o.Pods) >= MaxPods {
		o.Dropped++
		return
	}
	n := PodNotice{Result: counts, Pod: events.Pod{ // only what the event contains
		Name: p.Name, UID: p.UID, Index: p.Index, Serial: p.Serial, Finished: p.Finished, End: p.End}}
	i, _ := slices.BinarySearchFunc(o.Pods, n, bySerial)
	o.Pods = slices.Insert(o.Pods, i, n)
}

func bySerial(a, b PodNotice) int {
	return cmp.Or(cmp.Compare(a.Pod.Serial, b.Pod.Serial), cmp.Compare(a.Pod.UID, b.Pod.UID))
}

// confirmedPod notes the confirmation of an ID that is not a start or an end of the Job; of is false if it is one.
func (o *Outbox) confirmedPod(id string) (news, of bool) {
	if uid, of := events.FinishedPod(id); of {
		due := len(o.Pods)
		o.Pods = slices.DeleteFunc(o.Pods, func(n PodNotice) bool { return n.Pod.UID == uid })
		return len(o.Pods) < due, true
	}
	text, ok := strings.CutPrefix(id, DroppedPrefix)
	if n := 0; ok {
		if _, err := fmt.Sscan(text, &n); err == nil {
			o.Reported = max(o.Reported, min(n, o.Dropped))
		}
	}
	return false, ok
}

// dropped reports how many announcements have been dropped since the last report.
func (o *Outbox) dropped() []effect.Effect {
	if o.Dropped == o.Reported {
		return nil
	}
	return []effect.Effect{effect.ReportDropped{ID: DroppedPrefix + fmt.Sprint(o.Dropped), Count: o.Dropped - o.Reported}}
}
