package schedules_test

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
	base  = flag.Uint64("base", 0, "seed of the first world; 0 draws one")
	first = flag.Bool("first", false, "stop at the first world that breaks a law")
	steps = flag.Int("steps", 60, "how many things happen in each")
)

// TestWorlds plays random worlds: whatever dies, is late, arrives twice or is lost, each nominal time gets one verdict, each Job
// is created once and counted once, and no two run at once if the policy forbids it.
func TestWorlds(t *testing.T) {
	f := fn.Register(scheduledjob.New(zone.Load))
	from, n, most := uint64(time.Now().UnixNano())&(1<<32-1), *seeds, uint64(3) //nolint:gosec // it is positive
	if *base != 0 {
		from = *base
	}
	if *seed != 0 {
		from, n = *seed, 1
	}
	if *first {
		most = 1
	}
	worlds := make(chan uint64)
	var failed atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range worlds {
				w := schedules.New(s, f)
				if err := w.Live(*steps); err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\n\treplay: go test ./internal/sim/schedules -seed=%d", s, err, s)
				}
				if *seed != 0 {
					t.Log("\n" + strings.Join(w.Trace, "\n"))
				}
			}
		})
	}
	for s := from; s < from+n && failed.Load() < most; s++ {
		worlds <- s
	}
	close(worlds)
	wg.Wait()
}
