package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// suite has the System that most tests use, with the defaults.
var suite = harness.NewSuite("e2e", harness.Config{})

// atOnce is how many parallel tests run at once. They mostly wait for a backoff or a deadline, so there may be more of them than
// cores, but not so many that the node has no room for their Pods.
const atOnce = 16

func TestMain(m *testing.M) {
	if err := harness.Parallel(atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	suite.Main(m)
}

func programs(t *testing.T) harness.Programs { t.Helper(); return suite.Programs(t) }

// shared returns the System that most tests use, in working order.
func shared(t *testing.T) *harness.System { t.Helper(); return suite.Shared(t) }

// own returns a System of the test's own, for tests that break what others need.
func own(t *testing.T, c harness.Config) *harness.System { t.Helper(); return suite.Own(t, c) }
