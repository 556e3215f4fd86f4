//go:build mutation

package pod_test

import (
	"testing"

	"github.com/jobstream/jobstream/internal/sim/worldtest"
)

func TestWorldsOfJobs(t *testing.T) { worldtest.Jobs(t) }
