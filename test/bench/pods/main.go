// Command pods measures what very many Pods do to others, and prints tables to paste into docs/performance.md:
//
//	make bench-pods
//	make bench-pods PODS=10000        # in minutes
//
//	memory.go    the trigger's memory while that many Pods are there: as they come, at its start, and through relists
//	fairness.go  one Job of that many Pods at full speed: how long Jobs of one Pod wait beside it, jobstream's and the built-in's
//
// Tables go to stdout, progress to stderr. Nothing stays behind, however it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"path/filepath"

	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// options are the flags.
type options struct {
	pods, parallelism, small int
	memory, fairness         bool
}

func main() {
	o := options{}
	flag.IntVar(&o.pods, "pods", 100000, "Pods")
	flag.IntVar(&o.parallelism, "parallelism", 200, "Pods of the big Job that run at once")
	flag.IntVar(&o.small, "small", 30, "Jobs of one Pod that run beside it, one after the other")
	flag.BoolVar(&o.memory, "memory", true, "measure the trigger's memory")
	flag.BoolVar(&o.fairness, "fairness", true, "measure Jobs of one Pod beside a big one")
	flag.Parse()
	report.Main("pods", o.run)
}

func (o options) run(ctx context.Context, dir string) error {
	report.Say("building")
	programs, err := harness.BuildPrograms(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name   string
		wanted bool
		run    func(context.Context, *harness.System) error
	}{{"fairness", o.fairness, o.measureFairness}, {"memory", o.memory, o.measureMemory}} {
		if !part.wanted {
			continue
		}
		if err := within(ctx, harness.Config{Programs: programs, Dir: filepath.Join(dir, part.name),
			Flags: []string{"--log-level=info"}}, part.run); err != nil {
			return err
		}
	}
	return nil
}

// within measures in a fresh system, so that no part pays for what an earlier one has left.
func within(ctx context.Context, c harness.Config, measure func(context.Context, *harness.System) error) (err error) {
	system, err := harness.StartSystem(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	return measure(ctx, system)
}
