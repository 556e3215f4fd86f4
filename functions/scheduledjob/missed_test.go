package scheduledjob

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// A request may find that a Job is gone before it is known how it ended: a user has deleted it. Its end is counted when its deletion has been
// observed, which shows how it ended, or when a snapshot proves that nothing more will come. The policy Replace does not wait for that.
func TestAJobThatARequestDoesNotFind(t *testing.T) {
	missed := events.RunGone{Run: events.Run{Name: childName("nightly", minute(1)), UID: "j"}}
	running := events.Run{Name: missed.Run.Name, UID: "j", Version: 7, Nominal: minute(1), Created: minute(1)}
	ended := running
	ended.Version, ended.Result, ended.Finished = 8, events.RunComplete, minute(1).Add(30*time.Second)
	deleted := ended
	deleted.Version = 9
	without := deleted
	without.Result, without.Finished = "", time.Time{}
	for _, c := range []struct {
		name               string
		then               events.Event
		successful, failed int64
	}{
		{"and its deletion shows that it was complete", events.RunGone{Run: deleted}, 1, 0},
		{"and its deletion shows that it had not ended", events.RunGone{Run: without}, 0, 1},
		{"and its end is observed late", events.RunObserved{Run: ended}, 1, 0},
		{"nor does a snapshot", events.ScheduleListed{ID: "relist", Version: 20, SchedulesVersion: 1}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := everyMinute()
			s.put(Row{Run: running})
			s.Object.Status.DecidedUntil, s.Until = &metav1.Time{Time: minute(1)}, minute(1)
			s.Object.Status.Active = []corev1.ObjectReference{{Kind: "Job", Name: running.Name, UID: running.UID}}
			if l, ok := c.then.(events.ScheduleListed); ok {
				object := s.Object
				l.ScheduledJob = &object
				c.then = l
			}
			for range 2 { // a repeated fact changes nothing
				for _, w := range decideAt[effect.WriteScheduleStatus](&s, minute(1).Add(40*time.Second), missed) {
					if w.Status.Failed+w.Status.Successful > 0 || len(w.Status.Active) != 1 {
						t.Errorf("counted too early: %+v", w.Status)
					}
				}
			}
			if r := s.Runs["j"]; r.active() {
				t.Error("what is gone still keeps other runs from their start")
			}
			writes := decideAt[effect.WriteScheduleStatus](&s, minute(1).Add(41*time.Second), c.then, missed)
			if len(writes) != 1 {
				t.Fatalf("written: %+v", writes)
			}
			if st := writes[0].Status; st.Successful != c.successful || st.Failed != c.failed || len(st.Active) > 0 {
				t.Errorf("%d successful, %d failed, active are %v", st.Successful, st.Failed, st.Active)
			}
		})
	}
}
