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

var kept [][]byte // what is alive in TestFollow

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
	collections := func(of, keep int) uint32 { // while 1 GiB is allocated
		var before, after runtime.MemStats
		kept = nil
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range 1 << 30 / of {
			if b := make([]byte, of); i < keep {
				kept = append(kept, b)
			}
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	small, large := collections(64<<10, 16), collections(64<<10, 3200) // 1 and 200 MiB are alive
	most := uint32(40)                                                 // 16 would do; the runtime begins a collection early
	if os.Getenv("GOGC") != "" {
		if small < most {
			t.Errorf("%d collections: GOGC was ignored", small)
		}
		return
	}
	if small > most || large > most {
		t.Errorf("%d collections with a small heap, %d with a large one", small, large)
	}
}
