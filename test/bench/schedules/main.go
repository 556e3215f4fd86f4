// Command schedules measures what many schedules cost, and prints tables to paste into docs/performance.md:
//
//	make bench-schedules
//	make bench-schedules COUNT=300 IDLE=2000        # in two minutes instead of forty
//
// It starts everything that jobstream needs as in production (test/e2e/harness): a control plane with kube-controller-manager,
// NATS, one trigger, one reconciler. No Pod ever runs: the Jobs are suspended, so that only their creation is measured.
//
//	burst.go    many schedules that are due in the same second, jobstream's and then the built-in controller's
//	idle.go     very many schedules that are not due, and what our programs need meanwhile
//	cluster.go  the objects
//	../bulk     how they are made, and when each Job came and which ScheduledJobs have been taken notice of
//	../report   what /proc says about the machine and our programs
//	table.go    what is printed
//
// Tables go to stdout, progress to stderr. Nothing stays behind, however it ends.
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
	count, idle            int
	lead, builtinWait, cpu time.Duration
}

func main() {
	o := options{}
	flag.IntVar(&o.count, "count", 5000, "schedules that are due in the same second; 0 leaves this part out")
	flag.IntVar(&o.idle, "idle", 50000, "ScheduledJobs that are not due; 0 leaves this part out")
	flag.DurationVar(&o.lead, "lead", 0, "how far ahead the second is at least when the first schedule is made; 0 guesses. Where it is too short, it is doubled")
	flag.DurationVar(&o.builtinWait, "builtin-wait", 15*time.Minute, "how long to wait for the Jobs of CronJobs; what is there then is what is printed")
	flag.DurationVar(&o.cpu, "cpu", time.Minute, "how long CPU time is measured with idle schedules")
	flag.Parse()
	report.Main("schedules", o.run)
}

// bench is one run of the program.
type bench struct {
	options
	dir      string
	programs harness.Programs
}

func (o options) run(ctx context.Context, dir string) (err error) {
	b := &bench{options: o, dir: dir}
	report.Say("building")
	if b.programs, err = harness.BuildPrograms(ctx, filepath.Join(dir, "bin")); err != nil {
		return err
	}
	if o.count > 0 {
		if err := b.within(ctx, "burst", b.bursts); err != nil {
			return err
		}
	}
	if o.idle > 0 {
		if err := b.within(ctx, "idle", b.idleness); err != nil {
			return err
		}
	}
	return nil
}

// within measures in a fresh system, so that no part pays for what an earlier one has left.
func (b *bench) within(ctx context.Context, name string, measure func(context.Context, *cluster) error) (err error) {
	report.Say("starting everything for: %s", name)
	system, err := harness.StartSystem(ctx, harness.Config{
		Programs: b.programs, Dir: filepath.Join(b.dir, name), Flags: []string{"--log-level=info"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Stop()) }()
	c, err := bulk.NewCluster(system)
	if err != nil {
		return err
	}
	if err := measure(ctx, &cluster{c}); err != nil {
		return err
	}
	fmt.Printf("\nLoad average at the end of this part: %s\n", report.LoadAverage())
	return nil
}
