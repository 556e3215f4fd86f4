// Package garbage decides when the Go runtime collects a program's garbage.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Policy is when the runtime collects garbage: as soon as the heap has grown by Percent over what was alive after the last
// collection, but not before it has LeastHeap bytes. A program with little in its memory would otherwise collect garbage many times a
// second, for nothing: the Go runtime itself knows a percentage (GOGC), and no least heap. A limit of memory (GOMEMLIMIT) applies to both.
type Policy struct {
	// Percent is as in GOGC, greater than 0.
	Percent int
	// LeastHeap is in bytes, 0 or more.
	LeastHeap uint64
}

// emptyHeap is for how many live bytes at least the Go runtime calculates: with a GOGC of 100 it never collects before 4 MiB.
const emptyHeap = 4 << 20

// Follow makes the runtime follow p for as long as the program runs. It does nothing if the user has set GOGC.
func (p Policy) Follow() {
	if os.Getenv("GOGC") == "" {
		p.set(p.percent(0))
	}
}

// percent returns the GOGC for a heap of which so many bytes are alive.
func (p Policy) percent(live uint64) int {
	live = max(live, emptyHeap)
	if live >= p.LeastHeap {
		return p.Percent
	}
	return max(p.Percent, int(100*(p.LeastHeap-live)/live))
}

// collection is unreachable from the start, so the runtime cleans it up after the next collection.
type collection struct{ _ [16]byte }

// set sets the percentage, and sets it again after each collection that has left another size. Each change stops the program for a moment, so
// small ones are not made.
func (p Policy) set(percent int) {
	debug.SetGCPercent(percent)
	p.afterNext(percent)
}

func (p Policy) afterNext(percent int) {
	runtime.AddCleanup(&collection{}, func(percent int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := p.percent(live[0].Value.Uint64())
		if 10*max(next-percent, percent-next) > percent {
			p.set(next)
			return
		}
		p.afterNext(percent)
	}, percent)
}
