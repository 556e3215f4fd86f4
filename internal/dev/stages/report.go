package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// report tells the reader where the run is.
type report struct {
	out    io.Writer
	stages []stage
	began  time.Time
	rows   []string // a line for each stage that has run
	failed []string // what has failed in them
}

func (r *report) begin() {
	r.began = time.Now()
	fmt.Fprintf(r.out, "%d stages: %s\n", len(r.stages), left(r.stages))
}

// run runs the stage.
func (r *report) run(i int) (took time.Duration, err error) {
	s, at := r.stages[i], fmt.Sprintf("[%d/%d]", i+1, len(r.stages))
	expected := ""
	if s.last > 0 {
		expected = fmt.Sprintf(" (%s last time)", short(s.last))
	}
	fmt.Fprintf(r.out, "\n%s %s: %s%s\n", at, s.name, s.shows, expected)
	began, said := time.Now(), &failures{out: r.out}
	cpu, err := execute(s.name, said, func() {
		fmt.Fprintf(said, "%s %s: %s so far%s\n", at, s.name, short(time.Since(began)), expected)
	})
	took = time.Since(began)
	verdict := "ok"
	if err != nil {
		verdict = "FAILED"
		r.failed = append(r.failed, said.of(s.name, err)...)
	}
	r.rows = append(r.rows, fmt.Sprintf("%-12s %-7s %7s  %7s of the processors", s.name, verdict, short(took), short(cpu)))
	fmt.Fprintf(r.out, "%s %s: %s, %s; left: %s\n", at, s.name, verdict, short(took), left(r.stages[i+1:]))
	return took, err
}

// end prints one line for each stage, and then all that has failed.
func (r *report) end() {
	fmt.Fprintf(r.out, "\n%s\n%-12s %-7s %7s\n", strings.Join(r.rows, "\n"), "together", "", short(time.Since(r.began)))
	for _, line := range r.failed {
		fmt.Fprintln(r.out, line)
	}
}

// left names the stages, and how long they take together where that is known of some.
func left(stages []stage) string {
	if len(stages) == 0 {
		return "nothing"
	}
	var names []string
	var sum time.Duration
	unknown := 0
	for _, s := range stages {
		names = append(names, s.name)
		sum += s.last
		if s.last == 0 {
			unknown++
		}
	}
	about := ""
	switch {
	case unknown == len(stages):
	case unknown > 0:
		about = fmt.Sprintf(" (about %s by the last runs, and %d that have not run yet)", short(sum), unknown)
	default:
		about = fmt.Sprintf(" (about %s by the last runs)", short(sum))
	}
	return strings.Join(names, ", ") + about
}

// short is a duration in minutes and seconds.
func short(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	return fmt.Sprintf("%dm%02ds", s/60, s%60)
}
