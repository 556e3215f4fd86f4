package hostile

import (
	"fmt"
	"os"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// suite has the System that most attacks are on: two reconcilers, with every flag that permits an effect.
var suite = harness.NewSuite("hostile", harness.Config{Reconcilers: 2, ReconcilerFlags: []string{"--ttl-after-finished"}})

// atOnce is how many parallel tests run at once: all of them, for they wait most of the time.
const atOnce = 4

func TestMain(m *testing.M) {
	if err := harness.Parallel(atOnce); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
	suite.Main(m)
}

// system returns the System that most attacks are on.
func system(t *testing.T) *harness.System { t.Helper(); return suite.Shared(t) }

// own returns a System of the test's own, for measurements that no other test may disturb.
func own(t *testing.T, c harness.Config) *harness.System { t.Helper(); return suite.Own(t, c) }
