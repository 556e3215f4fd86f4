package garbage

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

func TestPercent(t *testing.T) {
	g := Policy{Percent: 50, LeastHeap: 64 << 20}
	for _, c := range []struct {
		name string
		live uint64
		want int
	}{
		{"at the start", 0, 1500},
		{"less than the runtime calculates for", 1 << 20, 1500},
		{"a small heap grows to the least one", 16 << 20, 300},
		{"a heap that the percentage lets grow as far", 43 << 20, 50},
		{"a large one", 64 << 20, 50},
		{"a very large one", 1 << 40, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := g.percent(c.live); got != c.want {
				t.Errorf("%d %%, not %d", got, c.want)
			}
		})
	}
}

// What TestFollow allocates: what is alive, and what is not.
var (
	kept    [][]byte
	garbage []byte
)

// TestFollow runs itself in a process of its own, because GOGC belongs to a process.
func TestFollow(t *testing.T) {
	if os.Getenv("JOBSTREAM_TEST_GARBAGE") == "" {
		for _, gogc := range []string{"", "100"} {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFollow$", "-test.v")
			c.Env = append(os.Environ(), "JOBSTREAM_TEST_GARBAGE=1", "GOGC="+gogc)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("GOGC=%q: %v\n%s", gogc, err, out)
			}
		}
		return
	}
	Policy{Percent: 100, LeastHeap: 64 << 20}.Follow()
	collections := func(mib int) uint32 { // while 1 GiB becomes garbage and so much is alive
		kept = nil
		for range mib {
			kept = append(kept, make([]byte, 1<<20))
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range 16 << 10 {
			garbage = make([]byte, 64<<10)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	first, large, again := collections(1), collections(200), collections(1)
	const most = 40 // 16 would do; the runtime begins a collection early
	switch gogc := os.Getenv("GOGC"); {
	case gogc != "" && first < most:
		t.Errorf("%d collections: GOGC was ignored", first)
	case gogc == "" && (first > most || again > most):
		t.Errorf("%d collections with a small heap, %d after a large one", first, again)
	case gogc == "" && large < 2: // 5 would do; the percentage of a small heap would let this one grow to 3 GiB
		t.Errorf("%d collections with a large heap", large)
	}
}
