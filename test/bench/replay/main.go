// Command replay measures how fast a subscriber catches up: 100,000 public events lie in the stream, and a new consumer reads
// them all in one go. It prints a table to paste into docs/performance.md:
//
//	make bench-replay
//
//	store.go    the events: JobStart and JobFinish as the bus announces them, on a server in a process of its own
//	read.go     the ways to read them
//
// The table goes to stdout, progress to stderr. Nothing stays behind, however it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// target is the required rate of the durable consumer with explicit acknowledgement.
const target = 20_000

func main() {
	events := flag.Int("events", 100_000, "events in the stream")
	runs := flag.Int("runs", 5, "how often each way is measured; the median counts")
	flag.Parse()
	report.Main("replay", func(ctx context.Context, dir string) error { return run(ctx, dir, *events, *runs) })
}

func run(ctx context.Context, dir string, events, runs int) (err error) {
	server, err := start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Kill()) }()
	bytes, took, err := fill(ctx, server.URL, events)
	if err != nil {
		return err
	}
	report.Say("%d events announced in %v", events, took.Round(time.Second))

	rows := [][]string{{"a new consumer reads all events", "events/s, median", "slowest", "fastest"}}
	rates := make([][]float64, len(ways))
	for n := range runs { // in turn, so that a busy moment of the machine affects all alike
		for i, w := range ways {
			took, err := w.measure(ctx, server.URL, events)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			rates[i] = append(rates[i], float64(events)/took.Seconds())
			report.Say("run %d, %s: %.0f/s", n+1, w.name, rates[i][n])
		}
	}
	for i, w := range ways {
		slices.Sort(rates[i])
		rows = append(rows, []string{w.name, rate(median(rates[i])), rate(rates[i][0]), rate(rates[i][runs-1])})
	}
	fmt.Println()
	report.Table(rows)
	fmt.Printf("\n%d events of %d bytes in the stream on average, %d runs.\n", events, bytes/uint64(events), runs) //nolint:gosec // more than 0
	if got := median(rates[0]); got < target {
		return fmt.Errorf("%s: %s events/s, at least %d are wanted", ways[0].name, rate(got), target)
	}
	return nil
}

func median(sorted []float64) float64 { return sorted[len(sorted)/2] }

func rate(r float64) string { return fmt.Sprintf("%.0f", r) }

func start(ctx context.Context, dir string) (*harness.NATS, error) {
	path := filepath.Join(dir, "natsd")
	if err := build(ctx, path); err != nil {
		return nil, err
	}
	return harness.StartNATS(ctx, path, dir)
}
