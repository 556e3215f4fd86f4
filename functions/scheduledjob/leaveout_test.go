package scheduledjob

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
)

// TestATimeThatIsDueIsNotLeftOut: where the clock is turned forward, 02:30 falls to 03:00. If 02:30 is excluded and 03:00 is due, that
// instant has the verdict on what is due, and no other.
func TestATimeThatIsDueIsNotLeftOut(t *testing.T) {
	j := events.ScheduledJob{UID: "a", Schedules: []string{"30 1,2 * * *", "0 3 * * *"}, Exclude: []string{"* 1-2 28 3 *"}, TimeZone: "Europe/Berlin"}
	times, problem := Timetable(j, time.LoadLocation)
	if problem != nil {
		t.Fatal(problem)
	}
	midnight := time.Date(2027, 3, 27, 23, 0, 0, 0, time.UTC) // in Berlin
	due, _ := times.Next(midnight)
	if want := time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC); !due.Equal(want) || !leftOutAt(times, want) {
		t.Fatalf("%v is due, %v is left out, too: %v", due, want, leftOutAt(times, want))
	}
	s := leaveOut(State{Object: j, Until: midnight}, times, due)
	if len(s.Pending) != 1 || s.Pending[0].Count != 1 || !last(s.Pending[0]).Before(due) || !s.Until.Before(due) {
		t.Errorf("until %v: %+v", s.Until, s.Pending)
	}
}

func leftOutAt(times Times, at time.Time) bool {
	return excluded(times).Count(at.Add(-time.Second), at) == 1
}
