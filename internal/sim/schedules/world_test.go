package schedules_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
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
	fmt.Printf("simulator of ScheduledJobs: %d worlds from base %d\n", n, from)
	worlds := make(chan uint64)
	var failed atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range worlds {
				w := schedules.New(s, f)
				if err := live(w); err != nil {
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

// live plays the world. A panic, too, is told with its seed.
func live(w *schedules.World) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return w.Live(*steps)
}

// The API server refuses the status of a ScheduledJob that is deleted, and the truth has nothing against it: the worker may not know yet.
func TestAStatusOfWhatIsDeleted(t *testing.T) {
	w := schedules.New(1, fn.Register(scheduledjob.New(zone.Load)))
	w.Object = nil
	schedules.NewTruth(w.API).Before(effect.WriteScheduleStatus{ScheduledJob: "nightly"})
	if facts := w.Act(effect.WriteScheduleStatus{ScheduledJob: "nightly"}); len(facts) != 1 || facts[0].Type() != events.TypeScheduledJobGone {
		t.Errorf("%v", facts)
	}
}
