package scheduledjob_test

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/sim/schedules"
	"github.com/jobstream/jobstream/internal/zone"
)

// A Job that the status does not list yet is not deleted to replace it: no record would show that it has started.
func TestReplaceWaitsUntilTheStatusListsTheJob(t *testing.T) {
	api := schedules.NewAPI(clock(t, "10:00:00"))
	api.Create(events.ScheduledJob{Namespace: "shop", Name: "nightly", Schedule: "* * * * *",
		ConcurrencyPolicy: v1alpha1.ReplaceConcurrent, CatchUp: v1alpha1.CatchUpLatest})
	f := scheduledjob.New(zone.Load)
	var state scheduledjob.State
	turns := func(write bool) (deleted int) {
		for range 20 {
			batch := api.Facts
			api.Facts = nil
			var effects []effect.Effect
			state, effects = f.Decide(state, batch, api.Now)
			for _, e := range effects {
				switch e.(type) {
				case effect.WriteScheduleStatus:
					if !write {
						continue // the API server does not answer
					}
				case effect.DeleteRun:
					deleted++
				}
				api.Facts = append(api.Facts, api.Act(e)...)
			}
		}
		return deleted
	}
	turns(true)
	for _, write := range []bool{false, false, true} {
		api.Now = api.Now.Add(time.Minute)
		api.Facts = append(api.Facts, events.ScheduleDue{Nominal: api.Now})
		if deleted := turns(write); (deleted > 0) != write {
			t.Errorf("at %s, with the status written: %v, %d Jobs are deleted", api.Now.Format(time.TimeOnly), write, deleted)
		}
	}
}
