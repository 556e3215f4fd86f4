//go:build mutation

package inventory_test

import (
	"testing"

	"github.com/jobstream/jobstream/internal/sim/worldtest"
)

func TestWorldsOfScheduledJobs(t *testing.T) { worldtest.ScheduledJobs(t) }

func TestWorldsOfJobs(t *testing.T) { worldtest.Jobs(t) }
