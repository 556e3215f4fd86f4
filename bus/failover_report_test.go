package bus

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/nats-io/nats.go"
)

// print writes the lines that docs/performance.md shows.
func (f *failover) print(out io.Writer, rows []round, lost, twice int) {
	fmt.Fprintf(out, "%s. %d cores, %s %s/%s, nats-server %s, nats.go %s\n\n", time.Now().UTC().Format("2006-01-02 15:04 MST"), runtime.NumCPU(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, f.trigger.nc.ConnectedServerVersion(), nats.Version)
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| nothing was confirmed\t| kill -9\t| p50\t| max\t|")
	fmt.Fprintln(w, "|---\t|---:\t|---:\t|---:\t|")
	for _, what := range []string{"facts", "states"} {
		for _, led := range []bool{true, false} {
			var gaps []time.Duration
			for _, r := range rows {
				if slices.Contains(r.led, what) == led {
					gaps = append(gaps, map[string]time.Duration{"facts": r.facts, "states": r.states}[what])
				}
			}
			if len(gaps) > 0 {
				fmt.Fprintf(w, "| %s, %s\t| %d\t| %s\t| %s\t|\n", what, map[bool]string{true: "of their leader", false: "of another server"}[led], len(gaps), median(gaps), longest(gaps))
			}
		}
	}
	_ = w.Flush() // to the test's own output
	fmt.Fprintf(out, "\n%d rounds, %d facts published, %d confirmed, %d deliveries, %d lost, %d applied twice, %d saves without an answer.\n",
		len(rows), f.published.Load(), len(f.confirmed), f.deliveries.Load(), lost, twice, f.unsure.Load())
}

func median(all []time.Duration) string {
	all = slices.Sorted(slices.Values(all))
	return secondsText(all[len(all)/2])
}

func longest(all []time.Duration) string { return secondsText(slices.Max(all)) }

func secondsText(d time.Duration) string {
	return fmt.Sprintf("%.2f s", d.Seconds())
}
