package outbox

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// A confirmation is news once, and of a Pod that is due.
func TestConfirmationsOfPods(t *testing.T) {
	uid := func(n string) types.UID { return types.UID("0b7e5d0a-5c1c-4d0e-8f6f-00000000000" + n) }
	id := func(n string) string {
		return events.PublicID(events.PodFinish(events.Job{Name: "pi", UID: "job-1"}, events.Pod{UID: uid(n), Finished: time.Unix(0, 0)}, events.PodFailed))
	}
	o := Outbox{Pods: []PodNotice{{Pod: events.Pod{UID: uid("1"), Serial: 1}}, {Pod: events.Pod{UID: uid("2"), Serial: 2}}}, Dropped: 9, Reported: 4}
	if news, of := o.confirmedPod(id("1")); !news || !of || len(o.Pods) != 1 {
		t.Errorf("of a Pod that is due: %v, %v, left %v", news, of, o.Pods)
	}
	if news, of := o.confirmedPod(id("1")); news || !of || len(o.Pods) != 1 {
		t.Errorf("once more: %v, %v, left %v", news, of, o.Pods)
	}
	if got := o.dropped(); len(got) != 1 || got[0] != (effect.ReportDropped{ID: "dropped/9", Count: 5}) {
		t.Errorf("%v", got)
	}
	if _, of := o.confirmedPod("dropped/9"); !of || o.Reported != 9 || len(o.dropped()) > 0 {
		t.Errorf("reported are %d", o.Reported)
	}
}
