//go:build mutation

package scheduledjob_test

import (
	"testing"

	"github.com/jobstream/jobstream/internal/sim/worldtest"
)

func TestWorldsOfScheduledJobs(t *testing.T) { worldtest.ScheduledJobs(t) }

func TestWorldsOfJobs(t *testing.T) { worldtest.Jobs(t) }
