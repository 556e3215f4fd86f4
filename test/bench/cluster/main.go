// Command cluster measures what a big cluster costs jobstream, on a part of it that fits a small machine, and prints tables to paste into
// docs/performance.md:
//
//	make bench-cluster                          # a tenth of the model, 11 minutes
//	make bench-cluster SCALE=0.01 MINUTES=1     # a try-out
//
// The other benchmarks ask how fast something is. This one asks what it takes when nothing is in a hurry: a cluster of a certain size
// lives, its Jobs run, its schedules come due, evenly over the hour, and for some minutes everything is measured that costs anything. What is
// measured is a part; what the whole needs is computed from it, and the last table tells the two apart.
//
//	model.go       the cluster of the model, a part of it, and how the whole is computed from the part
//	objects.go     the Jobs and ScheduledJobs of that part
//	run.go         the course of a measurement: start, without load, load, at rest, measured minutes, counts
//	traffic.go     which program sends which requests
//	moment.go      all that is read at one moment, and what lies between two of them
//	streams.go     what is on the bus
//	runs.go        which runs were due, which were made, and how late
//	counts.go      are all counts right at the end
//	table.go       what is printed of what was measured
//	whole.go       what is printed of what was computed
//
// No node plays a part in jobstream's work: its programs read and write Jobs, Pods and ScheduledJobs, and never a Node. So one hollow node,
// which plays its Pods instead of running processes, takes the Pods of all nodes of the model.
//
// Tables go to stdout, progress to stderr. Nothing stays behind, however it ends.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// options are the flags.
type options struct {
	scale, minutes float64
	schedule       string
}

func main() {
	o := options{}
	flag.Float64Var(&o.scale, "scale", 0.1, "the part of the model cluster that is run and measured")
	flag.Float64Var(&o.minutes, "minutes", 11, "how long it is measured. The trigger lists everything each 10 minutes: 11 have one such list, or two")
	flag.StringVar(&o.schedule, "schedule", "H * * * *", "of each ScheduledJob. \"H H * * * *\" spreads the runs over the seconds of the minute, too")
	flag.Parse()
	report.Main("cluster", o.run)
}

func (o options) run(ctx context.Context, dir string) error {
	if o.scale <= 0 || o.minutes <= 0 {
		return fmt.Errorf("-scale=%v -minutes=%v: both must be greater than 0", o.scale, o.minutes)
	}
	daily, err := daily(o.schedule)
	if err != nil {
		return err
	}
	report.Say("building")
	programs, err := harness.BuildPrograms(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return err
	}
	b := &bench{options: o, part: big.scaled(o.scale), daily: daily, measured: time.Duration(o.minutes * float64(time.Minute))}
	fmt.Printf("\n%s\n", b.introduction())
	r, err := b.measure(ctx, filepath.Join(dir, "system"), programs)
	if err != nil {
		return err
	}
	r.print()
	return r.wrong
}
