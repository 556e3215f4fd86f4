package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jobstream/jobstream/test/bench/report"
)

// print writes all tables: for each limit how fast both were, what it cost, and which requests that were.
func (r *results) print(out io.Writer, chosen []workload, limits []limit) {
	if len(r.Measurements) == 0 {
		return
	}
	fmt.Fprintf(out, "\nMedian [least, greatest]. The ratio is jobstream's number divided by the built-in controller's: the median of the pairs.\n")
	for _, l := range limits {
		rows := r.speeds(l, chosen)
		if len(rows) == 1 {
			continue
		}
		fmt.Fprintf(out, "\n**%s**: %s.\n\n", l.name, l.what)
		report.Write(out, rows)
		fmt.Fprintf(out, "\nWhat it costs:\n\n")
		report.Write(out, r.costs(l, chosen))
		if rows := r.bounds(l, chosen); len(rows) > 1 {
			fmt.Fprintf(out, "\nWhat bounds it: the processor time of controller, kube-apiserver and etcd together, and how many times as fast jobstream is if nothing else counts:\n\n")
			report.Write(out, rows)
		}
		fmt.Fprintf(out, "\nRequests to the API server, medians:\n\n")
		report.Write(out, r.requests(l, chosen))
	}
	fmt.Fprintln(out)
	for _, w := range chosen {
		fmt.Fprintf(out, "- %s: %s\n", w.name, w.what)
	}
}

// speeds is the table of what the workloads measure.
func (r *results) speeds(l limit, chosen []workload) [][]string {
	rows := [][]string{{"workload", "measure", "better is", builtIn, jobstream, "ratio", "pairs"}}
	for _, w := range chosen {
		if !r.has(l, w, builtIn) && !r.has(l, w, jobstream) {
			continue
		}
		for _, m := range w.measures {
			number := func(of measurement) (float64, bool) { n, ok := of.Values[m.name]; return n, ok }
			a, b := r.of(l, w, builtIn, number), r.of(l, w, jobstream, number)
			pairs := spreadOf(ratios(b, a))
			better := "less"
			if m.more {
				better = "more"
			}
			rows = append(rows, []string{w.name, m.name, better, r.cell(l, w, builtIn, a), r.cell(l, w, jobstream, b), times(pairs), fmt.Sprint(pairs.n)})
		}
	}
	return rows
}

// cell is a spread, with what did not end in time or failed.
func (r *results) cell(l limit, w workload, side string, numbers map[int]float64) string {
	if l.unknownTo == side {
		return "n/a"
	}
	text, s := "", spreadOf(numbers)
	switch {
	case s.n == 1:
		text = report.Number(s.median)
	case s.n > 1:
		text = fmt.Sprintf("%s [%s, %s]", report.Number(s.median), report.Number(s.least), report.Number(s.most))
	}
	if late := r.late(l, w, side); late > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s %d without a result", text, late))
	}
	return text
}

// column is a number of the table of costs.
type column struct {
	name string
	of   func(measurement) (float64, bool)
}

func perPod(program string) func(measurement) (float64, bool) {
	return func(m measurement) (float64, bool) { n, ok := m.CPU[program]; return 1000 * n / float64(m.Pods), ok }
}

func peak(program string) func(measurement) (float64, bool) {
	return func(m measurement) (float64, bool) { n, ok := m.Peak[program]; return n, ok }
}

var columns = []column{
	{"CPU ms a Pod: controller", perPod(controller)},
	{"trigger", perPod("trigger")}, {"reconciler", perPod("reconciler")}, {"nats-server", perPod("nats-server")},
	{apiServer, perPod(apiServer)}, {etcd, perPod(etcd)},
	{"status writes", func(m measurement) (float64, bool) { return m.StatusWrites, true }},
	{"controller's requests", func(m measurement) (float64, bool) { return m.ControllerRequests, true }},
	{"peak MiB: controller", peak(controller)},
	{"trigger", peak("trigger")}, {"reconciler", peak("reconciler")}, {"nats-server", peak("nats-server")},
	{apiServer, peak(apiServer)}, {etcd, peak(etcd)},
}

// costs is the table of costs: a row for each side, and one for their ratio.
func (r *results) costs(l limit, chosen []workload) [][]string {
	rows := [][]string{{"workload", "side"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.name)
	}
	for _, w := range chosen {
		if !r.has(l, w, builtIn) && !r.has(l, w, jobstream) {
			continue
		}
		first, second, both := []string{w.name, builtIn}, []string{w.name, jobstream}, []string{w.name, "ratio"}
		for _, c := range columns {
			a, b := r.of(l, w, builtIn, c.of), r.of(l, w, jobstream, c.of)
			first, second, both = append(first, median(a)), append(second, median(b)), append(both, times(spreadOf(ratios(b, a))))
		}
		rows = append(rows, first)
		if r.has(l, w, jobstream) {
			rows = append(rows, second, both)
		}
	}
	return rows
}

// bounds is the table of what all programs need together, where they share the processors: it tells the ratio to expect, and the most
// that a controller could reach which needs no time at all and has the same requests.
func (r *results) bounds(l limit, chosen []workload) [][]string {
	rows := [][]string{{"workload", "ms a Pod: " + builtIn, jobstream, "times as fast by that", "if jobstream's programs needed none"}}
	all := func(m measurement) (float64, bool) {
		return 1000 * (m.CPU[controller] + m.CPU[apiServer] + m.CPU[etcd]) / float64(m.Pods), true
	}
	others := func(m measurement) (float64, bool) {
		return 1000 * (m.CPU[apiServer] + m.CPU[etcd]) / float64(m.Pods), true
	}
	for _, w := range chosen {
		if !r.has(l, w, builtIn) || !r.has(l, w, jobstream) {
			continue
		}
		a, b, without := r.of(l, w, builtIn, all), r.of(l, w, jobstream, all), r.of(l, w, jobstream, others)
		rows = append(rows, []string{w.name, median(a), median(b), times(spreadOf(ratios(a, b))), times(spreadOf(ratios(a, without)))})
	}
	return rows
}

// requests is the table of a controller's requests, by verb and resource.
func (r *results) requests(l limit, chosen []workload) [][]string {
	rows := [][]string{{"workload", "request", builtIn, jobstream}}
	for _, w := range chosen {
		for _, request := range r.kinds(l, w) {
			of := func(m measurement) (float64, bool) { return m.Requests[request], true }
			rows = append(rows, []string{w.name, request, median(r.of(l, w, builtIn, of)), median(r.of(l, w, jobstream, of))})
		}
	}
	return rows
}

// kinds are the controllers' requests of a workload, sorted.
func (r *results) kinds(l limit, w workload) (all []string) {
	for _, m := range r.Measurements {
		if m.Limit != l.name || m.Workload != w.name {
			continue
		}
		for request := range m.Requests {
			if w.ofController(request) && !slices.Contains(all, request) {
				all = append(all, request)
			}
		}
	}
	slices.Sort(all)
	return all
}

func median(numbers map[int]float64) string {
	if s := spreadOf(numbers); s.n > 0 {
		return report.Number(s.median)
	}
	return ""
}

func times(s spread) string {
	if s.n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2fx", s.median)
}
