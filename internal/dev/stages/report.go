package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// report tells the reader where the run is.
type report struct {
	out    io.Writer
	stages []stage // that are left
	done   int
	began  time.Time
	rows   []string // a line for each stage that has run
	failed []string // what has failed in them
}

func (r *report) begin() {
	r.began = time.Now()
	fmt.Fprintf(r.out, "%d stages: %s\n", len(r.stages), left(r.stages))
}

// run runs the next stage, and those that run at the same time, and returns them.
func (r *report) run() []stage {
	n := 1
	for n < len(r.stages) && r.stages[n].with {
		n++
	}
	group, all := r.stages[:n], r.done+len(r.stages)
	r.stages = r.stages[n:]
	for i, s := range group {
		fmt.Fprintf(r.out, "\n[%d/%d] %s: %s%s\n", r.done+i+1, all, s.name, s.shows, s.expected())
	}
	shown, began := &locked{out: r.out}, time.Now()
	var running sync.WaitGroup
	for i := range group {
		s, at, later := &group[i], fmt.Sprintf("[%d/%d]", r.done+i+1, all), &bytes.Buffer{}
		s.said = &failures{out: shown}
		if i > 0 {
			s.said.out = later
		}
		running.Go(func() {
			s.cpu, s.err = execute(s.name, s.said, func() {
				fmt.Fprintf(shown, "%s %s: %s so far%s\n", at, s.name, short(time.Since(began)), s.expected())
			})
			s.took, s.verdict = time.Since(began), "ok"
			if s.err != nil {
				s.verdict = "FAILED"
			}
			fmt.Fprintf(later, "%s %s: %s, %s; left: %s\n", at, s.name, s.verdict, short(s.took), left(r.stages))
			_, _ = later.WriteTo(shown)
		})
	}
	running.Wait()
	r.done += n
	for _, s := range group {
		if s.err != nil {
			r.failed = append(r.failed, s.said.of(s.name, s.err)...)
		}
		r.rows = append(r.rows, fmt.Sprintf("%-12s %-7s %7s  %7s of the processors", s.name, s.verdict, short(s.took), short(s.cpu)))
	}
	return group
}

// locked lets stages that run at the same time write to one output.
type locked struct {
	mu  sync.Mutex
	out io.Writer
}

// Write writes to the output.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// end prints one line for each stage, and then all that has failed.
func (r *report) end() {
	fmt.Fprintf(r.out, "\n%s\n%-12s %-7s %7s\n", strings.Join(r.rows, "\n"), "together", "", short(time.Since(r.began)))
	for _, line := range r.failed {
		fmt.Fprintln(r.out, line)
	}
}

// expected is how long the stage is expected to take, if that is known.
func (s stage) expected() string {
	if s.last == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s last time)", short(s.last))
}

// left names the stages, and how long they take together where that is known of some.
func left(stages []stage) string {
	if len(stages) == 0 {
		return "nothing"
	}
	var names []string
	var sum, longest time.Duration // of all, and of those that run at the same time
	unknown := 0
	for _, s := range stages {
		names = append(names, s.name)
		if !s.with {
			longest = 0
		}
		sum += max(0, s.last-longest)
		longest = max(longest, s.last)
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
