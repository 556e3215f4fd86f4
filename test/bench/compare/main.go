// Command compare runs the same work under Kubernetes' own Job controller and under jobstream, in turn and repeatedly, and prints tables
// to paste into docs/performance.md:
//
//	make bench
//	make bench ONLY=one,storm ROUNDS=1
//	go run -C test/bench ./compare -scale=0.1 -rounds=1 -only=big500    # a try-out
//	go run -C test/bench ./compare -from=monday.json,tuesday.json       # hours of measurements, in parts
//
//	workloads.go  the work, and what is measured of it
//	side.go       the two sides, and the limits of their requests
//	run.go        one measurement: one workload on one side, in a system of its own
//	distance.go   an API server that is far away
//	due.go        schedules that are due in the same second
//	load.go       Jobs are created, and watches (../bulk) show what becomes of them
//	cost.go       what it has cost: processors, memory, requests to the API server
//	result.go     measurements, their file, and what follows from several of them
//	table.go      what is printed
//	plot.go       the ratios as a plot
//	profile.go    what the processors do meanwhile
//
// Tables go to stdout, progress to stderr. Nothing stays behind but the file with the measurements, however it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// options are the flags.
type options struct {
	rounds       int
	scale        float64
	only, limits string
	out, profile string
	svg, from    string
}

func main() {
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 5, "pairs of measurements of each workload")
	flag.Float64Var(&o.scale, "scale", 1, "part of each workload's size, for a try-out")
	flag.StringVar(&o.only, "only", "", "names of the workloads, separated by commas; by default all except large: "+strings.Join(names(workloads), ", "))
	flag.StringVar(&o.limits, "limits", "unlimited,default", "limits of requests to the API server, separated by commas: "+strings.Join(names(limits), ", "))
	flag.StringVar(&o.out, "out", filepath.Join(harness.Root, ".cache", "bench"), "folder for bench.json")
	flag.StringVar(&o.profile, "profile", "", "folder for profiles of jobstream's programs under each workload; then the built-in controller is not measured")
	flag.StringVar(&o.svg, "svg", "", "file for a plot of the ratios; by default there is none")
	flag.StringVar(&o.from, "from", "", "nothing is measured: the tables of these files, separated by commas; of each workload under each limit, the measurements of the last file that has any")
	flag.Parse()
	report.Main("compare", o.run)
}

// bench is one run of the program.
type bench struct {
	options
	dir      string
	programs harness.Programs
	results  *results
	profiler profiler
	sides    []side
}

func (o options) run(ctx context.Context, dir string) error {
	chosen, err := choose(workloads, o.only, func(w workload) bool { return !w.large })
	if err != nil {
		return err
	}
	limits, err := choose(limits, o.limits, func(limit) bool { return true })
	if err != nil {
		return err
	}
	if o.from != "" {
		r, err := readResults(strings.Split(o.from, ","))
		if err != nil {
			return err
		}
		fmt.Printf("Measured by, and on:\n\n%s", r.Command)
		return o.show(r, chosen, limits)
	}
	b := &bench{options: o, dir: dir, sides: sides}
	if b.results, err = openResults(o.out); err != nil {
		return err
	}
	if b.profiler, err = open(o.profile); err != nil {
		return err
	}
	if o.profile != "" {
		b.sides = sides[1:]
	}
	report.Say("building")
	if b.programs, err = harness.BuildPrograms(ctx, filepath.Join(dir, "bin")); err != nil {
		return err
	}
	err = b.measureAll(ctx, chosen, limits)
	err = errors.Join(err, o.show(b.results, chosen, limits))
	fmt.Printf("\nEvery measurement: %s\n", b.results.file)
	return err
}

// show prints the tables, draws the plot if there shall be one, and returns an error if a measurement failed.
func (o options) show(r *results, chosen []workload, limits []limit) (err error) {
	r.print(os.Stdout, chosen, limits)
	if o.svg != "" {
		err = r.writePlot(o.svg, chosen, limits)
	}
	return errors.Join(err, r.wrong())
}

// measureAll measures pairs, the two of a pair one after the other, so that the machine's mood is the same for both. Who is first
// changes from round to round.
func (b *bench) measureAll(ctx context.Context, chosen []workload, limits []limit) error {
	for round := range b.rounds {
		for _, l := range limits {
			for _, w := range chosen {
				if !w.under(l, b.only != "") {
					continue
				}
				for i := range b.sides {
					s := b.sides[(i+round)%len(b.sides)]
					if l.unknownTo == s.name {
						continue
					}
					m := b.measure(ctx, w.scaled(b.scale), l, s, round+1)
					if ctx.Err() != nil {
						return ctx.Err() // the measurement was interrupted
					}
					report.Say("round %d, %s, %s, %s: %s", round+1, l.name, w.name, s.name, m.brief())
					if err := b.results.add(m); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// named is what a flag chooses by its name.
type named interface{ String() string }

func names[T named](all []T) (names []string) {
	for _, one := range all {
		names = append(names, one.String())
	}
	return names
}

// choose returns those of all whose names the list has; if it is empty, those that usual wants.
func choose[T named](all []T, list string, usual func(T) bool) (chosen []T, err error) {
	wanted := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	for _, one := range all {
		if slices.Contains(wanted, one.String()) || len(wanted) == 0 && usual(one) {
			chosen = append(chosen, one)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names(all), name) {
			err = errors.Join(err, fmt.Errorf("%q is unknown: choose from %s", name, strings.Join(names(all), ", ")))
		}
	}
	return chosen, err
}
