package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// quiet is how long everything is ready before schedules are due. The built-in controller does not show which CronJobs it has
	// observed: it has this time for it.
	quiet = 15 * time.Second
	// leadEach and leadLeast are how long the creation and the observation of a schedule take, on two busy cores.
	leadEach  = 20 * time.Millisecond
	leadLeast = 20 * time.Second
)

// errNotReady is the end of a measurement whose schedules came due too early.
var errNotReady = fmt.Errorf("%w: not all schedules were ready %v before they were due", errLate, quiet)

// oneRun is the Job of a schedule.
var oneRun = batch{count: 1, completions: 1, parallelism: 1}

// lead is how long before they are due schedules are created at most, since cron knows only whole minutes; 0 if the workload has none.
func (w workload) lead() time.Duration {
	if w.due == 0 {
		return 0
	}
	return leadLeast + time.Duration(w.due)*leadEach + quiet + time.Minute
}

// dueAt is the full minute at which schedules are due that are created from now on.
func (w workload) dueAt(now time.Time) time.Time {
	return now.Add(w.lead() - time.Nanosecond).Truncate(time.Minute).UTC()
}

// schedule creates the workload's schedules, and returns their time shortly before it comes.
func schedule(ctx context.Context, system *harness.System, w workload, s side) (due time.Time, err error) {
	c, err := bulk.NewCluster(system)
	if err != nil {
		return due, err
	}
	due = w.dueAt(time.Now())
	inTime, cancel := context.WithDeadlineCause(ctx, due.Add(-quiet), errNotReady)
	defer cancel()
	err = s.schedules(inTime, c, w, fmt.Sprintf("%d %d %d %d *", due.Minute(), due.Hour(), due.Day(), due.Month()))
	if err != nil && ctx.Err() == nil && inTime.Err() != nil {
		return due, errNotReady
	}
	if err != nil {
		return due, err
	}
	return due, c.Pass(ctx, "ready; quiet", due.Add(-settle))
}

// template is that of a schedule's Jobs; each controller sets whose they are.
func template() batchv1.JobTemplateSpec {
	return batchv1.JobTemplateSpec{Spec: oneRun.object("", nil).Spec}
}

// scheduledJobs creates ScheduledJobs, and returns when the reconciler has observed all.
func scheduledJobs(ctx context.Context, c *bulk.Cluster, w workload, cron string) error {
	decided, err := c.WatchScheduledJobs(ctx, w.name, bulk.Decided)
	if err != nil {
		return err
	}
	in := func(int) string { return w.name }
	if err := c.Make(ctx, "ScheduledJobs", w.due, c.ScheduledJobs(v1alpha1.ScheduledJobSpec{Schedule: cron, JobTemplate: template()}, in)); err != nil {
		return err
	}
	return c.Await(ctx, "ScheduledJobs decided", decided.Count, w.due, time.Time{})
}

// cronJobs creates CronJobs.
func cronJobs(ctx context.Context, c *bulk.Cluster, w workload, cron string) error {
	return c.Make(ctx, "CronJobs", w.due, c.CronJobs(batchv1.CronJobSpec{Schedule: cron, JobTemplate: template()}, w.name))
}

// verifyDue returns an error unless each schedule has made one Job, and that has ended as it should.
func verifyDue(ctx context.Context, system *harness.System, w workload) (err error) {
	jobs, err := system.Client.BatchV1().Jobs(w.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	owners := map[types.UID]bool{}
	for i := range jobs.Items {
		j := &jobs.Items[i]
		if owner := metav1.GetControllerOf(j); owner != nil {
			owners[owner.UID] = true
		}
		err = errors.Join(err, oneRun.check(j))
	}
	if len(jobs.Items) != w.due || len(owners) != w.due {
		err = errors.Join(err, fmt.Errorf("%d schedules have made %d Jobs, of %d schedules", w.due, len(jobs.Items), len(owners)))
	}
	return err
}
