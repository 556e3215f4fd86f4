package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jobstream/jobstream/test/bench/report"
)

// gibibyte is one in KiB.
const gibibyte = 1 << 20

// whole is the table of what the model needs. Each row has what was measured without load and with it, and what is computed from the two.
func (r *results) whole() [][]string {
	rows := [][]string{{"", "without load, measured", fmt.Sprintf("SCALE=%v, measured", r.scale), "the model, computed"},
		{"Pods that run all the time", "", strconv.Itoa(r.part.pods()), strconv.Itoa(big.pods())},
		{"ScheduledJobs", "", strconv.Itoa(r.part.schedules), strconv.Itoa(big.schedules)},
		{"Jobs of runs a day", "", strconv.Itoa(r.part.schedules * r.daily), strconv.Itoa(big.schedules * r.daily)}}
	add := func(what string, without, with float64) {
		rows = append(rows, []string{what, precise(without), precise(with), precise(whole(without, with, r.scale))})
	}
	for _, p := range names {
		add("cores, "+p, r.empty.cores(p), r.full.cores(p))
	}
	for _, p := range names {
		add("peak GiB of memory, "+p, float64(r.empty.to.usage[p].RSS)/gibibyte, float64(r.full.to.usage[p].Peak)/gibibyte)
	}
	add("requests/s of jobstream", ownRate(r.empty), ownRate(r.full))
	add("requests/s of all clients", r.empty.sentAll(""), r.full.sentAll(""))
	add("facts/s", r.empty.facts(), r.full.facts())
	add("turns/s", r.empty.turns(), r.full.turns())
	for _, name := range r.used() {
		add("MiB on the bus at the end, "+name, float64(r.empty.to.streams[name].bytes)/(1<<20), float64(r.full.to.streams[name].bytes)/(1<<20))
	}
	for _, name := range r.used() {
		add("MiB more an hour, "+name, r.empty.grown(name)*3600/(1<<20), r.full.grown(name)*3600/(1<<20))
	}
	for _, name := range r.used() {
		if hours, known := untilFull(r.full.to.streams[name], whole(r.empty.grown(name), r.full.grown(name), r.scale)); known {
			rows = append(rows, []string{"h until its limit, " + name, "", "", precise(hours)})
		}
	}
	return rows
}

// ownRate is how many requests jobstream's programs have sent in a second.
func ownRate(i interval) (sum float64) {
	for _, program := range own {
		sum += i.sentAll(program)
	}
	return sum
}

// precise writes a small number to the thousandth, for parts of a core, and a larger one as all benchmarks do.
func precise(n float64) string {
	if n > 0 && n < 1 {
		return fmt.Sprintf("%.3f", n)
	}
	return report.Number(n)
}

// used are the streams that hold anything.
func (r *results) used() (all []string) {
	for _, name := range slices.Sorted(maps.Keys(r.full.to.streams)) {
		if r.full.to.streams[name].bytes > 0 {
			all = append(all, name)
		}
	}
	return all
}

// untilFull is how many hours an empty stream of that kind takes to reach its limit of bytes if it grows so fast. It is not known of a
// stream without an age: what such a stream holds is replaced, or goes by itself, and does not grow for ever.
func untilFull(s stream, grownInASecond float64) (hours float64, known bool) {
	if s.age == 0 || s.most == 0 || grownInASecond <= 0 {
		return 0, false
	}
	return float64(s.most) / grownInASecond / 3600, true
}
