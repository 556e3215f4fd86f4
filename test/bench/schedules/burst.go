package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
)

const (
	// quiet is how long everything is ready before the second comes. The built-in controller does not show which CronJobs it has
	// observed: it has this time for it.
	quiet = 15 * time.Second
	// leadEach and leadLeast are how long the creation and the observation of a schedule take, on two busy cores.
	leadEach  = 15 * time.Millisecond
	leadLeast = 30 * time.Second
	// ourWait is how long to wait for jobstream's Jobs.
	ourWait = 10 * time.Minute
	// clearWait is how long to wait until a failed try is deleted.
	clearWait = 5 * time.Minute
)

// errTooLate is returned if the second came before everything was ready.
var errTooLate = errors.New("not ready in time")

// kind is a kind of schedules.
type kind struct {
	name string
	make func(namespace, schedule string) bulk.Maker
	// decided watches which of them the reconciler has observed; nil for kinds that do not show it.
	decided func(ctx context.Context, namespace string) (*bulk.Observations, error)
	wait    time.Duration
}

// result is the result of one burst.
type result struct {
	name          string
	due           time.Time
	wait          time.Duration
	count, double int
	late          []time.Duration // sorted
}

// bursts measures many schedules that are due in the same second: jobstream's, then the built-in controller's.
func (b *bench) bursts(ctx context.Context, c *cluster) error {
	var results []result
	for _, k := range []kind{
		{"ScheduledJobs, jobstream", c.jobstream, c.watchDecided, ourWait},
		{"CronJobs, built-in controller", c.builtIn, nil, b.builtinWait},
	} {
		r, err := b.burst(ctx, c, k)
		if err != nil {
			printBursts(results) // so that they are not lost if the rest fails
			return fmt.Errorf("%s: %w", k.name, err)
		}
		results = append(results, r)
	}
	printBursts(results)
	return nil
}

// burst tries until everything is ready in time.
func (b *bench) burst(ctx context.Context, c *cluster, k kind) (result, error) {
	lead := b.lead
	if lead == 0 {
		lead = leadLeast + time.Duration(b.count)*leadEach
	}
	for {
		namespace, err := bulk.NewNamespace(ctx, c.System)
		if err != nil {
			return result{}, err
		}
		began := time.Now()
		due := minuteAfter(began.Add(lead + quiet))
		r, err := b.try(ctx, c, k, namespace, due)
		if !errors.Is(err, errTooLate) {
			return r, err
		}
		report.Say("%s were not ready in time: once more, with twice as much of it", k.name)
		lead = 2 * due.Sub(began)
		if err := discard(ctx, c, namespace); err != nil {
			return result{}, err
		}
	}
}

// minuteAfter is the first full minute that is not before t.
func minuteAfter(t time.Time) time.Time {
	return t.Add(time.Minute - time.Nanosecond).Truncate(time.Minute).UTC()
}

// try creates the schedules, waits for their second, and observes their Jobs.
func (b *bench) try(ctx context.Context, c *cluster, k kind, namespace string, due time.Time) (r result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, err := c.watchJobs(ctx, namespace)
	if err != nil {
		return r, err
	}
	report.Say("%d %s, due at %s", b.count, k.name, due.Format(time.TimeOnly))
	if err := b.ready(ctx, c, k, namespace, due); err != nil {
		return r, err
	}
	if err := c.Pass(ctx, "ready; quiet", due); err != nil {
		return r, err
	}
	if err := c.Await(ctx, "Jobs of "+k.name, jobs.Count, b.count, due.Add(k.wait)); err != nil {
		return r, err
	}
	r = result{name: k.name, due: due, wait: k.wait, count: b.count, late: jobs.Since(due), double: jobs.TooMany()}
	report.Sort(r.late)
	return r, nil
}

// ready creates the schedules and returns when they are observed, or an error in time if they are not.
func (b *bench) ready(ctx context.Context, c *cluster, k kind, namespace string, due time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, due.Add(-quiet), errTooLate)
	defer cancel()
	var decided *bulk.Observations
	var err error
	if k.decided != nil {
		decided, err = k.decided(ctx, namespace)
	}
	if err == nil {
		err = c.Make(ctx, k.name, b.count, k.make(namespace, fmt.Sprintf("%d %d %d %d *", due.Minute(), due.Hour(), due.Day(), due.Month())))
	}
	if err == nil && decided != nil {
		err = c.Await(ctx, k.name+" decided", decided.Count, b.count, due)
	}
	if err != nil && errors.Is(context.Cause(ctx), errTooLate) {
		return errTooLate
	}
	return err
}

// discard deletes what a try has left, and waits until it no longer disturbs the next.
func discard(ctx context.Context, c *cluster, namespace string) error {
	namespaces := c.Client.CoreV1().Namespaces()
	if err := namespaces.Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete what came to nothing: %w", err)
	}
	gone := func() int {
		if _, err := namespaces.Get(ctx, namespace, metav1.GetOptions{}); err == nil {
			return 0
		}
		return 1
	}
	return c.Await(ctx, "namespaces deleted", gone, 1, time.Now().Add(clearWait))
}
