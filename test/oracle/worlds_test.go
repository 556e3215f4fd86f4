package oracle_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/dev/size"
	"github.com/jobstream/jobstream/internal/sim"
	"github.com/jobstream/jobstream/test/oracle"
)

var (
	worlds = flag.Int("worlds", size.OracleWorlds, "how many worlds TestWorlds runs")
	base   = flag.Uint64("base", 0, "seed of the first world; 0 draws one")
	seed   = flag.Uint64("seed", 0, "run this one world and print its trace")
)

// TestWorlds judges every status write that the simulator's worlds store, and every Job that they invent: the oracle must not
// judge what no API server would have accepted.
func TestWorlds(t *testing.T) {
	if *seed != 0 {
		if w := witness(*seed, os.Stdout); w.broken() != nil {
			t.Fatal(w.broken())
		}
		return
	}
	if *base == 0 {
		*base = uint64(rand.Uint32()) + 1
	}
	t.Logf("%d worlds from base %d", *worlds, *base)
	next, writes, lawless, bad := make(chan uint64), 0, 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for s := range next {
				w := witness(s, nil)
				mu.Lock()
				writes += w.writes
				if w.law != nil {
					lawless++
					t.Logf("seed %d ended early: %v", s, w.law)
				}
				if err := w.broken(); err != nil && bad < 10 {
					bad++
					t.Errorf("seed %d: %v\n  replay: go test -C test ./oracle -run TestWorlds -seed=%d", s, err, s)
				}
				mu.Unlock()
			}
		})
	}
	for i := range uint64(*worlds) {
		next <- *base + i
	}
	close(next)
	wg.Wait()
	t.Logf("%d status writes judged; %d worlds ended early, by a law of the simulator", writes, lawless)
	if writes < 2**worlds {
		t.Errorf("%d worlds have written %d statuses only", *worlds, writes)
	}
}

// clerk keeps the oracle's verdicts about one world: the first refused write, and the first invention of the simulator that no
// API server would accept.
type clerk struct {
	last                 map[types.UID]events.Job
	writes               int
	refused, implausible error
	law                  error // of the simulator: its own tests report it
}

// witness runs the world.
func witness(seed uint64, out io.Writer) *clerk {
	c := &clerk{last: map[types.UID]events.Job{}}
	w := sim.NewLimited(seed, job.New, sim.Rough, out)
	w.Watch(c.wrote)
	c.law = sim.Live(w, nil)
	return c
}

func (c *clerk) wrote(before, after events.Job) {
	c.writes++
	if err := oracle.Verdict(before, after); err != nil && c.refused == nil {
		c.refused = fmt.Errorf("write %d of job %s: %w\non   %v\nwith %v", c.writes, before.UID, err, words(before), words(after))
	}
	if c.implausible == nil {
		c.implausible = c.plausible(before)
	}
	c.last[before.UID] = after
}

// plausible returns an error for a user's change since the last write that no API server would have accepted.
func (c *clerk) plausible(now events.Job) error {
	was, ok := c.last[now.UID]
	if !ok {
		if err := oracle.Creatable(now); err != nil {
			return fmt.Errorf("the simulator invents a Job that no user can create: %w", err)
		}
		return nil
	}
	edited := now
	edited.Status = was.Status
	if err := oracle.Editable(was, edited); err != nil {
		return fmt.Errorf("the simulator's user changes a Job as no user can: %w", err)
	}
	if err := oracle.Verdict(edited, now); err != nil {
		return fmt.Errorf("the simulator writes a status that no API server would store: %w", err)
	}
	return nil
}

func (c *clerk) broken() error { return errors.Join(c.refused, c.implausible) }
