package hostile

import (
	"fmt"
	"os"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// suite has the System that most attacks are on: two reconcilers, which may do everything that there is to do.
var suite = harness.NewSuite("hostile", harness.Config{Reconcilers: 2, ReconcilerFlags: []string{"--ttl-after-finished"}})

// atOnce is how many parallel tests run at once: all that there are, for they wait most of the time.
const atOnce = 4

func TestMain(m *testing.M) {
	if err := harness.Parallel(atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
	suite.Main(m)
}

// system is the one that most attacks are on.
func system(t *testing.T) *harness.System { t.Helper(); return suite.Shared(t) }

// own is a System of the test's own, for measures that nobody else may disturb.
func own(t *testing.T, c harness.Config) *harness.System { t.Helper(); return suite.Own(t, c) }
