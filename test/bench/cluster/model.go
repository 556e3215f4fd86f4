package main

import (
	"fmt"
	"math"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
)

// model is a cluster of a certain size.
type model struct {
	nodes int
	// jobs run all the time, each with so many Pods.
	jobs, podsOfJob int
	// schedules make Jobs of one Pod that ends at once.
	schedules int
}

// big is the model: a cluster as large as Kubernetes supports (5,000 nodes, 150,000 Pods), with more schedules than most have. If each
// is hourly, they make 1,200,000 Jobs a day.
var big = model{nodes: 5000, jobs: 15000, podsOfJob: 10, schedules: 50000}

// pods are those that run all the time.
func (m model) pods() int { return m.jobs * m.podsOfJob }

// scaled returns a part of the model: fewer Jobs and ScheduledJobs, each as large as before, and as often.
func (m model) scaled(part float64) model {
	of := func(n int) int { return max(1, int(math.Round(float64(n)*part))) }
	m.nodes, m.jobs, m.schedules = of(m.nodes), of(m.jobs), of(m.schedules)
	return m
}

// whole computes what the model needs of something, from what a part of it has needed. What is there without any load is there
// once, however large the cluster, so only what the load has added is divided by the scale. Less than without load is
// imprecision: then the load has added nothing.
func whole(without, with, scale float64) float64 { return without + max(0, with-without)/scale }

// daily is how many runs a day the schedule has, on a day without a change of clocks.
func daily(text string) (int, error) {
	s, err := schedule.Parse(text, schedule.Options{Seed: "any"})
	if err != nil {
		return 0, fmt.Errorf("-schedule: %w", err)
	}
	day := time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC).Add(-time.Nanosecond)
	n := int(s.Count(day, day.Add(24*time.Hour)))
	if n == 0 {
		return 0, fmt.Errorf("-schedule %q has no run on most days: nothing would be measured", text)
	}
	return n, nil
}

// introduction describes the model and the part of it that runs.
func (b *bench) introduction() string {
	return fmt.Sprintf("The model: %d nodes; %d Pods that run all the time, in %d Jobs of %d; %d ScheduledJobs `%s`, each with %d runs a day, so %d Jobs a day "+
		"of one Pod that ends at once, deleted %d s later (`ttlSecondsAfterFinished`).\n\n"+
		"Measured is SCALE=%v of it: %d Pods in %d Jobs, %d ScheduledJobs, %d Jobs a day, %.1f a minute. Nodes play no part in jobstream's work: one hollow "+
		"node, which plays its Pods, stands for %d. Everything is in %d namespaces.",
		big.nodes, big.pods(), big.jobs, big.podsOfJob, big.schedules, b.schedule, b.daily, big.schedules*b.daily, ttl,
		b.scale, b.part.pods(), b.part.jobs, b.part.schedules, b.part.schedules*b.daily, b.runsPerMinute(), b.part.nodes, namespaces)
}

func (b *bench) runsPerMinute() float64 { return float64(b.part.schedules*b.daily) / (24 * 60) }
