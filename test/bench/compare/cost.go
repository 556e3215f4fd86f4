package main

import (
	"context"
	"errors"
	"strings"

	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// cost is what a side has used by now, or between two moments.
type cost struct {
	// CPU are seconds, Peak the largest resident memory so far in MiB, by program; controller is the sum of a side's own.
	CPU  map[string]float64 `json:"cpuSeconds"`
	Peak map[string]float64 `json:"peakMiB"`
	// Requests are those that the API server has answered, by verb and resource, such as "PATCH jobs/status".
	Requests map[string]float64 `json:"requests"`
	// Refused are those of them that it answered with an error of the client's, such as a conflict.
	Refused map[string]float64 `json:"refused,omitempty"`
}

// used reads /proc for the programs. The sum of peaks is an upper bound: not all of them peak at once.
func used(system *harness.System, l limit, s side) (c cost, err error) {
	own, shared, err := s.paths(system, l)
	if err != nil {
		return c, err
	}
	c.CPU, c.Peak = map[string]float64{}, map[string]float64{}
	read := func(programs map[string]string) (cpu, peak float64) {
		for name, path := range programs {
			u, usageErr := report.UsageOf(path)
			err = errors.Join(err, usageErr)
			c.CPU[name], c.Peak[name] = u.CPU.Seconds(), float64(u.Peak)/1024
			cpu, peak = cpu+c.CPU[name], peak+c.Peak[name]
		}
		return cpu, peak
	}
	read(shared)
	c.CPU[controller], c.Peak[controller] = read(own)
	return c, err
}

// before reads all that a measurement starts from. The requests come first, since to answer for them costs the API server.
func before(ctx context.Context, system *harness.System, l limit, s side) (cost, error) {
	requests, refused, err := report.Requests(ctx, system.Client)
	if err != nil {
		return cost{}, err
	}
	c, err := used(system, l, s)
	c.Requests, c.Refused = requests, refused
	return c, err
}

// since returns what has been used since then.
func since(ctx context.Context, system *harness.System, l limit, s side, then cost) (cost, error) {
	c, err := used(system, l, s)
	if err != nil {
		return c, err
	}
	c.Requests, c.Refused, err = report.Requests(ctx, system.Client)
	report.Subtract(c.CPU, then.CPU)
	report.Subtract(c.Requests, then.Requests)
	report.Subtract(c.Refused, then.Refused)
	return c, err
}

// resources are those that a controller of Jobs or schedules has to do with. All others are the node's, or the API server's own.
var resources = map[string]bool{"pods": true, "jobs": true, "jobs/status": true, "events": true, "cronjobs": true, "cronjobs/status": true,
	"scheduledjobs": true, "scheduledjobs/status": true}

// ofController reports whether the request is a controller's. Jobs are created by the benchmark, unless schedules are due; it lists nothing
// while it measures. Watches are left out: all of them watch, and they are counted at their end.
func (w workload) ofController(request string) bool {
	verb, resource, _ := strings.Cut(request, " ")
	return resources[resource] && verb != "WATCH" && (request != "POST jobs" || w.due > 0)
}

// statusWrite reports whether the request writes the status of a Job.
func statusWrite(request string) bool {
	return request == "PUT jobs/status" || request == "PATCH jobs/status"
}

// count adds up the requests that are wanted.
func (c cost) count(wanted func(request string) bool) (n float64) {
	for request, times := range c.Requests {
		if wanted(request) {
			n += times
		}
	}
	return n
}
