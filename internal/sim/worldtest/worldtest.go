// Package worldtest plays simulated worlds as a test of another package. Only tests with the build tag "mutation" do (see
// internal/dev/mutation), which have to notice a changed operator of that package: "make sim" plays far more.
package worldtest

import (
	"testing"

	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/sim"
	"github.com/jobstream/jobstream/internal/sim/schedules"
	"github.com/jobstream/jobstream/internal/zone"
)

// worlds is how many are played of each simulator: one or two seconds.
const worlds = 200

// Jobs plays worlds of Jobs, ScheduledJobs beside them, and stops at the first that breaks a law.
func Jobs(t *testing.T) {
	for seed := range uint64(worlds) {
		if err := sim.Live(sim.NewLimited(seed+1, job.New, sim.Rough, nil), map[string]int{}); err != nil {
			t.Fatalf("seed %d: %v", seed+1, err)
		}
	}
}

// ScheduledJobs plays worlds of one ScheduledJob, and stops at the first that breaks a law.
func ScheduledJobs(t *testing.T) {
	f := fn.Register(scheduledjob.New(zone.Load))
	for seed := range uint64(worlds) {
		if err := schedules.New(seed+1, f).Live(60); err != nil {
			t.Fatalf("seed %d: %v", seed+1, err)
		}
	}
}
