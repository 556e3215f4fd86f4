package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

// print writes all tables: first what was measured, then what follows for the model.
func (r *results) print() {
	fmt.Printf("\nMeasured for %s, from %s UTC on. Lists of everything by the trigger (`--relist-interval`, 10 minutes by default) that fell into them: %d.\n\n",
		r.full.to.at.Sub(r.full.from.at).Round(time.Second), r.full.from.at.UTC().Format(time.TimeOnly), r.relists)
	report.Table(r.programs())
	fmt.Printf("\n*Without load* was measured for %s before anything was created. *Peak, created* is the largest until all was at rest, *peak* that of the measured time.\n", idle)
	fmt.Printf("\nRequests to the API server in a second, without watches. *All clients* are also the node, kube-controller-manager, and the benchmark.\n\n")
	report.Table(r.requests())
	fmt.Printf("\nFacts in a second: %s. Turns of the reconciler in a second: %s. On the bus:\n\n", report.Number(r.full.facts()), report.Number(r.full.turns()))
	report.Table(r.streams())
	fmt.Printf("\nRuns that were due meanwhile. Lateness: from the nominal time to the observation of the Job in a watch.\n\n")
	report.Table(r.punctual())
	fmt.Printf("\nWhat the model cluster needs by this measurement. **The last column is computed, nothing of it was measured**: "+
		"what there is without load, and what the load has added to it divided by SCALE=%v.\n\n", r.scale)
	report.Table(r.whole())
	fmt.Printf("\nMeasured: the two columns before it. Given: the rows without a value for *without load*. Not computed: lateness. " +
		"The runs of a minute are due at the same second unless the schedule has one, and the model has more of them. " +
		"A limit is reached unless the age of the stream is reached before.\n")
}

// programs is the table of processors and memory: a row for each program.
func (r *results) programs() [][]string {
	rows := [][]string{{"program", "CPU s per minute, without load", "CPU s per minute", "RSS, without load", "RSS at the end", "peak, created", "peak"}}
	for _, p := range names {
		rows = append(rows, []string{p, perMinute(r.empty.cores(p)), perMinute(r.full.cores(p)), report.Mebibytes(r.empty.to.usage[p].RSS),
			report.Mebibytes(r.full.to.usage[p].RSS), report.Mebibytes(r.peak[p].Peak), report.Mebibytes(r.full.to.usage[p].Peak)})
	}
	return rows
}

func perMinute(cores float64) string { return fmt.Sprintf("%.2f", cores*60) }

// requests is the table of jobstream's requests, by verb and resource, the most frequent first.
func (r *results) requests() [][]string {
	rows := [][]string{{"request", "trigger", "reconciler", "all clients"}}
	for _, request := range r.kinds() {
		rows = append(rows, []string{request, rate(r.full.sent("trigger", request)), rate(r.full.sent("reconciler", request)), rate(r.full.sent("", request))})
	}
	return append(rows, []string{"sum", rate(r.full.sentAll("trigger")), rate(r.full.sentAll("reconciler")), rate(r.full.sentAll(""))})
}

// kinds are the requests that jobstream's programs have sent in the measured time.
func (r *results) kinds() []string {
	sum := map[string]float64{}
	for _, program := range own {
		for request := range r.full.to.own[program] {
			if n := r.full.sent(program, request); n > 0 && counted(request) {
				sum[request] += n
			}
		}
	}
	return slices.SortedFunc(maps.Keys(sum), func(a, b string) int { return cmp.Or(cmp.Compare(sum[b], sum[a]), cmp.Compare(a, b)) })
}

// rate writes a number of requests in a second to the thousandth: of a relist, few requests are many minutes apart.
func rate(n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", n)
}

// streams is the table of what is on the bus.
func (r *results) streams() [][]string {
	rows := [][]string{{"stream", "bytes at the end", "more in a minute", "limit", "kept for"}}
	for _, name := range slices.Sorted(maps.Keys(r.full.to.streams)) {
		s := r.full.to.streams[name]
		rows = append(rows, []string{name, mebibytes(float64(s.bytes)), mebibytes(r.full.grown(name) * 60), limit(s.most), kept(s.age)})
	}
	return rows
}

func limit(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return mebibytes(float64(bytes))
}

func kept(age time.Duration) string {
	if age == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f h", age.Hours())
}

func mebibytes(bytes float64) string { return report.Number(bytes/(1<<20)) + " MiB" }

// punctual is the table of runs.
func (r *results) punctual() [][]string {
	p := r.runs
	at := func(percent int) string { return report.Seconds(report.Quantile(p.lateness, percent)) }
	return [][]string{
		{"runs due", "made", "twice", "more than 1 s late", "p50", "p99", "the last"},
		{strconv.Itoa(p.due), strconv.Itoa(len(p.lateness)), strconv.Itoa(p.twice), strconv.Itoa(p.late), at(50), at(99), at(100)},
	}
}
