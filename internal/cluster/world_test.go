package cluster_test

import (
	"testing"

	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

// world is one test's namespace.
type world struct{ *clustertest.World }

func newWorld(t *testing.T) *world { return &world{clustertest.NewWorld(t)} }
