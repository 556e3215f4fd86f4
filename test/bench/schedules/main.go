// Command schedules measures what very many ScheduledJobs cost while they are not due, and prints a table to paste into
// docs/performance.md:
//
//	make bench-schedules
//	make bench-schedules IDLE=2000        # in two minutes instead of forty
//
// It starts everything that jobstream needs as in production (test/e2e/harness): a control plane with kube-controller-manager,
// NATS, one trigger, one reconciler. What it costs that many are due in the same second is measured by ../compare.
//
//	idle.go     the schedules, and what our programs need meanwhile
//	../bulk     how they are made, and which of them have been taken notice of
//	../report   what /proc says about the machine and our programs
//	table.go    what is printed
//
// The table goes to stdout, progress to stderr. Nothing stays behind, however it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// options are the flags.
type options struct {
	idle int
	cpu  time.Duration
}

func main() {
	o := options{}
	flag.IntVar(&o.idle, "idle", 50000, "how many ScheduledJobs, at least 1")
	flag.DurationVar(&o.cpu, "cpu", time.Minute, "how long CPU time is measured with idle schedules")
	flag.Parse()
	report.Main("schedules", o.run)
}

// run measures in a system of its own.
func (o options) run(ctx context.Context, dir string) (err error) {
	if o.idle < 1 {
		return fmt.Errorf("-idle=%d: at least 1", o.idle)
	}
	report.Say("building")
	programs, err := harness.BuildPrograms(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	report.Say("starting everything")
	system, err := harness.StartSystem(ctx, harness.Config{
		Programs: programs, Dir: filepath.Join(dir, "system"), Flags: []string{"--log-level=info"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	c, err := bulk.NewCluster(system)
	if err != nil {
		return err
	}
	if err := o.idleness(ctx, c); err != nil {
		return err
	}
	fmt.Printf("\nLoad average at the end: %s\n", report.LoadAverage())
	return nil
}
