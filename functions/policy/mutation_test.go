//go:build mutation

package policy_test

import (
	"testing"

	"github.com/jobstream/jobstream/internal/sim/worldtest"
)

func TestWorldsOfJobs(t *testing.T) { worldtest.Jobs(t) }
