package schedules_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/fn"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/sim/schedules"
	"github.com/jobstream/jobstream/internal/zone"
)

var (
	seed  = flag.Uint64("seed", 0, "play this world alone, and print what happens in it")
	seeds = flag.Uint64("seeds", 300, "how many worlds to play")
	steps = flag.Int("steps", 60, "how many things happen in each")
)

// TestWorlds plays random worlds: whatever dies, is late, arrives twice or is lost, each nominal time gets one verdict, each Job
// is created once and counted once, and no two run at once if the policy forbids it.
func TestWorlds(t *testing.T) {
	f := fn.Register(scheduledjob.New(zone.Load))
	first, last := uint64(time.Now().UnixNano())&(1<<32-1), *seeds //nolint:gosec // it is positive
	if *seed != 0 {
		first, last = *seed, 1
	}
	failed := 0
	for s := first; s < first+last && failed < 3; s++ {
		w := schedules.New(s, f)
		if err := w.Live(*steps); err != nil {
			failed++
			t.Errorf("seed %d: %v\n\treplay: go test ./internal/sim/schedules -seed=%d", s, err, s)
		}
		if *seed != 0 {
			t.Log("\n" + strings.Join(w.Trace, "\n"))
		}
	}
}
