package scheduledjob

import (
	"testing"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// Who has started a Job does not change: an annotation that a user adds or takes off while it runs says nothing about that.
func TestWhoHasStartedAJobDoesNotChange(t *testing.T) {
	s := everyMinute()
	run := events.Run{Name: childName("nightly", minute(-5)), UID: "backfill", Version: 20, Nominal: minute(-5), Manual: true, Created: ten}
	decideAt[effect.WriteScheduleStatus](&s, ten, events.RunObserved{Run: run})
	run.Version, run.Manual = 21, false
	if deleted := decideAt[effect.DeleteRun](&s, ten, events.RunObserved{Run: run}); len(deleted) != 0 {
		t.Errorf("it is deleted as one that the clock has made too late: %v", deleted)
	}
}
