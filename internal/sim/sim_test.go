package sim_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/sim"
)

var (
	seeds = flag.Int("seeds", 200, "how many worlds TestWorlds runs")
	base  = flag.Uint64("base", 0, "seed of the first world; 0 draws one")
	seed  = flag.Uint64("seed", 0, "run this one world and print its trace")
	first = flag.Bool("first", false, "stop at the first world that breaks a law")
)

// TestWorlds runs random worlds. A world that breaks a law names the command that replays it.
func TestWorlds(t *testing.T) {
	if *seed != 0 {
		if _, err := run(*seed, os.Stdout, nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	if *base == 0 {
		*base = uint64(rand.Uint32()) + 1
	}
	fmt.Printf("simulator: %d worlds from base %d\n", *seeds, *base)
	total, rows, mu := map[string]int{}, map[string]int{}, sync.Mutex{}
	t.Run("seeds", func(t *testing.T) {
		next := make(chan uint64)
		var wg sync.WaitGroup
		bad := 0
		for range runtime.GOMAXPROCS(0) {
			wg.Go(func() {
				for s := range next {
					own := map[string]int{}
					exercised, err := run(s, nil, own)
					mu.Lock()
					for k, n := range own {
						total[k] += n
					}
					for id := range exercised {
						rows[id]++
					}
					if own[sim.HealedByRelist] > 0 {
						fmt.Printf("simulator: seed %d needed another relist\n", s)
					}
					if err != nil && bad < 10 {
						bad++
						t.Errorf("seed %d: %v\n  replay: go test ./internal/sim -run TestWorlds -seed=%d", s, err, s)
					}
					mu.Unlock()
				}
			})
		}
		for i := range uint64(*seeds) {
			mu.Lock()
			enough := *first && bad > 0
			mu.Unlock()
			if enough {
				break
			}
			next <- *base + i
		}
		close(next)
		wg.Wait()
	})
	fmt.Printf("simulator: %v\n", total)
	rare := sim.PrintRows(os.Stdout, rows, fewest)
	if len(rare) > 0 && *seeds >= long && os.Getenv("JOBSTREAM_SIM_FEATURES") == "" {
		t.Errorf("fewer than %d of %d worlds have exercised %v", fewest, *seeds, rare)
	}
	for _, what := range misfortunes {
		if total[what] < fewest && *seeds >= long {
			t.Errorf("%q has happened %d times in %d worlds, and should have %d times", what, total[what], *seeds, fewest)
		}
	}
	if healed := total[sim.HealedByRelist]; healed > 1 && healed*1000 > *seeds {
		t.Errorf("%d of %d worlds needed another relist: several, and more than 1 in 1,000, are no accident", healed, *seeds)
	}
}

// misfortunes are the faults of reconcilers and the bus, and their consequences. A long run has all of them.
var misfortunes = []string{"join", "leave", "die", "stop", "deaf", "mute", "cut off", "clock set", "newer state", "rolled back", "upgraded", "unknown fact", "state lost", "bus lost"}

const (
	// long is the number of worlds from which a run must exercise every row,
	long = 20_000
	// and fewest is the number of worlds that must exercise it.
	fewest = 100
)

// run plays one world: rough weather, then calm until it settles, then a while longer to check that it stays settled. It returns
// the rows that the world has exercised. A panic is an error, so that its seed is told, too.
func run(seed uint64, out io.Writer, steps map[string]int) (rows map[string]bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	w := sim.NewLimited(seed, job.New, sim.Rough, out)
	err = sim.Live(w, steps)
	return w.Rows, err
}
