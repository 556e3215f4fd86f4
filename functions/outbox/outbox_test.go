package outbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func minute(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// observed returns the Job at that version, started at one minute and, unless end is 0, ended at another.
func observed(version uint64, start, end int) events.Job {
	j := events.Job{Name: "pi", UID: "job", Version: version, Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: minute(start)}}}
	if end != 0 {
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: metav1.NewTime(minute(end))}}
	}
	return j
}

// due describes the notices in the order in which they are announced, "-" for one that is not to be announced any more.
func due(o Outbox) string {
	var all []string
	for _, n := range o.Notices {
		switch {
		case n.done():
			all = append(all, "-")
		default:
			all = append(all, fmt.Sprintf("%s@%d", n.event(), n.Version))
		}
	}
	return strings.Join(all, ", ")
}

// Observations come in any order: starts are announced by time, the end after them, each once, as the oldest observation showed it.
func TestStartsComeInOrderAndTheEndLast(t *testing.T) {
	var o Outbox
	for _, j := range []events.Job{observed(9, 5, 7), observed(8, 5, 0), observed(3, 2, 0), observed(4, 2, 0), {UID: "job", Version: 1, Foreign: true, Status: observed(1, 1, 0).Status}} {
		o.Note(j)
	}
	if got := due(o); got != "JobStart 2026-01-05T12:02:00Z@3, JobStart 2026-01-05T12:05:00Z@8, JobFinish Succeeded 2026-01-05T12:07:00Z@9" {
		t.Errorf("%s", got)
	}
	if !o.Confirmed(o.Notices[1].ID) || o.Confirmed(o.Notices[0].ID) {
		t.Error("a confirmation is news once")
	}
	o.Note(observed(7, 5, 0)) // an older observation of what is confirmed
	if got := due(o); got != "-, JobStart 2026-01-05T12:02:00Z@3, JobFinish Succeeded 2026-01-05T12:07:00Z@9" {
		t.Errorf("after a confirmation: %s", got)
	}
	if !o.Confirmed("job/start/unseen") || len(o.Notices) != 4 {
		t.Error("a confirmation overtakes the observation: it is remembered")
	}
}

// What a state saw first when it began was probably announced by a lost one: it is repeated while the bus recognizes a repetition.
func TestWhatIsAnnouncedAgain(t *testing.T) {
	for _, c := range []struct {
		name    string
		known   bool
		version uint64
		age     int
		due     bool
	}{
		{"before this state began, and as old as the window", true, 5, 60, true},
		{"before this state began, and older", true, 5, 61, false},
		{"since this state began, however old", true, 6, 999, true},
		{"before the inventory, and older", false, 6, 61, false},
		{"before the inventory, and as old as the window", false, 6, 60, true},
	} {
		o := Outbox{Began: 5}
		o.Note(observed(c.version, -c.age, 0))
		o.Judge(c.known, noon, time.Hour)
		if o.Notices[0].Due != c.due || o.Notices[0].done() == c.due || o.Empty() == c.due {
			t.Errorf("%s: %+v", c.name, o.Notices[0])
		}
		o.Judge(c.known, noon.Add(time.Hour), time.Hour) // is decided once
		if o.Notices[0].done() == c.due {
			t.Errorf("%s, an hour later: %+v", c.name, o.Notices[0])
		}
	}
}

// A subscriber receives the start before the Pods, and the end after them.
func TestWhatIsAnnouncedNext(t *testing.T) {
	j := observed(3, 1, 9)
	var o Outbox
	o.Note(j)
	o.Judge(true, minute(9), time.Hour)
	o.Ended(events.Pod{Name: "pi-b", UID: "b", Serial: 2, Index: events.NoIndex, Finished: minute(2)}, events.PodFailed)
	o.Ended(events.Pod{Name: "pi-a", UID: "a", Serial: 1, Index: events.NoIndex, Finished: minute(3)}, events.PodSucceeded)
	var said []string
	for range 3 {
		all := o.Announce(j)
		for _, e := range all {
			said = append(said, e.String())
			o.Confirmed(events.PublicID(e.(effect.Announce).Event))
		}
		said = append(said, ";")
	}
	if got := strings.Join(said, " "); got != "Announce JobStart 2026-01-05T12:01:00Z ; Announce PodFinish Succeeded pi-a 2026-01-05T12:03:00Z Announce PodFinish Failed pi-b 2026-01-05T12:02:00Z ; Announce JobFinish Succeeded 2026-01-05T12:09:00Z ;" {
		t.Errorf("%s", got)
	}
	if !o.Empty() || len(o.Announce(j)) != 0 {
		t.Errorf("left is %+v", o)
	}
}

// The memory of a Job that starts without end, or whose Pods end while the bus is away, is bounded. What is due is never forgotten, and
// what is dropped is reported.
func TestAnOutboxIsBounded(t *testing.T) {
	var o Outbox
	for n := range MaxNotices + 5 {
		o.Note(observed(uint64(n+1), n, 0))
	}
	if len(o.Notices) != MaxNotices+5 {
		t.Errorf("%d of %d starts that are due are left", len(o.Notices), MaxNotices+5)
	}
	o = Outbox{}
	for n := range MaxNotices + 5 {
		o.Note(observed(uint64(n+1), n, 0))
		o.Confirmed(o.Notices[len(o.Notices)-1].ID)
	}
	if len(o.Notices) != MaxNotices {
		t.Errorf("%d confirmed starts are remembered", len(o.Notices))
	}
	o = Outbox{}
	for n := range MaxPods + 2 {
		o.Ended(events.Pod{UID: types.UID(fmt.Sprint(n)), Serial: n}, events.PodFailed)
	}
	if len(o.Pods) != MaxPods || o.Dropped != 2 || o.Empty() {
		t.Errorf("%d ends of Pods, %d dropped", len(o.Pods), o.Dropped)
	}
	o.Pods = nil
	if o.Empty() || len(o.Announce(events.Job{})) != 1 {
		t.Error("the report on what was dropped is due")
	}
	for id, left := range map[string]int{"dropped/": 2, "dropped/x": 2, "dropped/1": 1, "dropped/9": 0} { // none can report more than were dropped
		o := o
		if news, of := o.confirmedPod(id); news || !of || o.Dropped-o.Reported != left {
			t.Errorf("after %q, %d are not reported", id, o.Dropped-o.Reported)
		}
	}
}
