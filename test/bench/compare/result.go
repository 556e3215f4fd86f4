package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

// measurement is one workload on one side.
type measurement struct {
	Round    int       `json:"round"`
	Limit    string    `json:"limit"`
	Workload string    `json:"workload"`
	Side     string    `json:"side"`
	Began    time.Time `json:"began"`
	// Load is the machine's load average before.
	Load    string  `json:"loadAverage"`
	Pods    int     `json:"pods"`
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"seconds"`
	// Values are what the workload measures, by the names of its measures.
	Values map[string]float64 `json:"values"`
	cost
	StatusWrites       float64 `json:"statusWrites"`
	ControllerRequests float64 `json:"controllerRequests"`
	// Late tells that it did not end in time, Error that it failed or ended with wrong counts.
	Late  string `json:"late,omitempty"`
	Error string `json:"error,omitempty"`
}

// good reports whether its numbers count.
func (m measurement) good() bool { return m.Late == "" && m.Error == "" }

// brief is the measurement in one line.
func (m measurement) brief() string {
	if !m.good() {
		return m.Late + m.Error
	}
	return fmt.Sprintf("%.2f s, %d Pods, CPU %.2f s, API server %.2f s, %.0f status writes, load %s",
		m.Seconds, m.Pods, m.CPU[controller], m.CPU[apiServer], m.StatusWrites, m.Load)
}

// results are all measurements so far.
type results struct {
	file         string
	Machine      string        `json:"machine"`
	Command      string        `json:"command"`
	Measurements []measurement `json:"measurements"`
}

// openResults creates the folder of the file.
func openResults(dir string) (*results, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &results{file: filepath.Join(dir, "bench.json"), Machine: report.Machine(), Command: "compare " + strings.Join(os.Args[1:], " ")}, os.MkdirAll(dir, 0o755)
}

// readResults reads files of earlier runs, and lists their commands and machines in its own. Where two have the same workload under the same limit, the later one replaces it.
func readResults(files []string) (*results, error) {
	all := &results{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var r results
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s is not a file with measurements: %w", file, err)
		}
		all.Measurements = slices.DeleteFunc(all.Measurements, func(m measurement) bool {
			return slices.ContainsFunc(r.Measurements, func(by measurement) bool { return by.Limit == m.Limit && by.Workload == m.Workload })
		})
		all.Measurements = append(all.Measurements, r.Measurements...)
		all.Command += fmt.Sprintf("- %s: %s: %s\n", filepath.Base(file), r.Command, r.Machine)
	}
	return all, nil
}

// add keeps a measurement and writes the file anew: what is interrupted after hours has not been in vain.
func (r *results) add(m measurement) error {
	r.Measurements = append(r.Measurements, m)
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.file, append(text, '\n'), 0o600)
}

// wrong returns an error if a measurement failed.
func (r *results) wrong() (err error) {
	for _, m := range r.Measurements {
		if m.Error != "" {
			err = errors.Join(err, fmt.Errorf("round %d, %s, %s, %s: %s", m.Round, m.Limit, m.Workload, m.Side, m.Error))
		}
	}
	return err
}

// of returns a number of each good measurement of one side, by round.
func (r *results) of(l limit, w workload, side string, number func(measurement) (float64, bool)) map[int]float64 {
	all := map[int]float64{}
	for _, m := range r.Measurements {
		if m.Limit == l.name && m.Workload == w.name && m.Side == side && m.good() {
			if n, ok := number(m); ok {
				all[m.Round] = n
			}
		}
	}
	return all
}

// has reports whether anything was measured.
func (r *results) has(l limit, w workload, side string) bool {
	return slices.ContainsFunc(r.Measurements, func(m measurement) bool { return m.Limit == l.name && m.Workload == w.name && m.Side == side })
}

// late returns how many measurements of one side did not end in time or failed.
func (r *results) late(l limit, w workload, side string) (n int) {
	for _, m := range r.Measurements {
		if m.Limit == l.name && m.Workload == w.name && m.Side == side && !m.good() {
			n++
		}
	}
	return n
}

// ratios divides jobstream's number by the built-in controller's, of each round that has both.
func ratios(jobstream, builtIn map[int]float64) map[int]float64 {
	all := map[int]float64{}
	for round, n := range jobstream {
		if by := builtIn[round]; by > 0 {
			all[round] = n / by
		}
	}
	return all
}

// spread is the median, the least and the greatest of some numbers.
type spread struct {
	n                   int
	median, least, most float64
}

func spreadOf(numbers map[int]float64) spread {
	var all []float64
	for _, n := range numbers {
		all = append(all, n)
	}
	if len(all) == 0 {
		return spread{}
	}
	slices.Sort(all)
	n := len(all)
	return spread{n: n, median: (all[(n-1)/2] + all[n/2]) / 2, least: all[0], most: all[n-1]}
}
