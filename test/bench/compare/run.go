package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// settle is how long after the last Job's end a side's costs still count: both do things behind.
const settle = 2 * time.Second

// warm is a small Job that runs first: then the controller is at work, and its connections are open.
var warm = workload{name: "warm", jobs: []batch{{count: 3, completions: 5, parallelism: 5}}}

// measure measures one workload on one side in a fresh system, so that it does not pay for what an earlier one has left.
func (b *bench) measure(ctx context.Context, w workload, l limit, s side, round int) (m measurement) {
	m = measurement{Round: round, Limit: l.name, Workload: w.name, Side: s.name, Began: time.Now().UTC(), Load: report.LoadAverage(), Pods: w.pods()}
	dir := filepath.Join(b.dir, "system")
	err := b.within(ctx, dir, l, s, func(system *harness.System) error {
		begin := func() *files { return b.profiler.start(ctx, system, w.name+"-"+l.name) }
		return m.run(ctx, system, task{w, l, s, begin})
	})
	switch {
	case errors.Is(err, errLate):
		m.Late = err.Error()
	case err != nil:
		m.Error = err.Error()
	}
	return m
}

func (b *bench) within(ctx context.Context, dir string, l limit, s side, work func(*harness.System) error) (err error) {
	c := s.config(l)
	b.profiler.flags(&c)
	c.Programs, c.Dir, c.HollowPods, c.Unaudited = b.programs, dir, podsAtOnce, true
	system, err := harness.StartSystem(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Stop(), os.RemoveAll(dir)) }()
	return work(system)
}

// task is what a measurement is about; begin starts profiles.
type task struct {
	workload workload
	limit    limit
	side     side
	begin    func() *files
}

// run warms the system up, runs the workload, and fills in the measurement.
func (m *measurement) run(ctx context.Context, system *harness.System, t task) error {
	most := t.workload.timeout(t.limit)
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("%w of %v", errLate, most))
	defer cancel()
	if err := far(ctx, system, t.limit, t.side); err != nil {
		return err
	}
	if err := warmUp(ctx, system, t.side); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	seen, err := prepare(ctx, system, t.workload, t.side)
	if err != nil {
		return ended(ctx, err)
	}
	then, err := before(ctx, system, t.limit, t.side)
	if err != nil {
		return err
	}
	profiles := t.begin()
	done, err := perform(ctx, system, t.workload, t.side, seen)
	if err != nil {
		return ended(ctx, err)
	}
	if err := bulk.Rest(ctx, settle); err != nil {
		return err
	}
	if m.cost, err = since(ctx, system, t.limit, t.side, then); err != nil {
		return err
	}
	m.Jobs, m.Seconds, m.Values = len(done.jobs), done.took().Seconds(), map[string]float64{}
	m.StatusWrites, m.ControllerRequests = m.count(statusWrite), m.count(t.workload.ofController)
	for _, each := range t.workload.measures {
		m.Values[each.name] = each.of(done)
	}
	return errors.Join(verify(ctx, system, t.workload), profiles.print(ctx))
}

// ended returns the error with why ctx has ended, if it has: of a request that was under way, the error is another one.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}

// warmUp runs a few small Jobs.
func warmUp(ctx context.Context, system *harness.System, s side) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := prepare(ctx, system, warm, s)
	if err != nil {
		return err
	}
	if _, err := perform(ctx, system, warm, s, seen); err != nil {
		return err
	}
	return bulk.Rest(ctx, settle)
}

// prepare makes what must be there before the workload begins: a namespace of its own, schedules that are about to be due, and watches,
// which end with ctx.
func prepare(ctx context.Context, system *harness.System, w workload, s side) (*observer, error) {
	_, err := system.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a namespace: %w", err)
	}
	due := time.Time{}
	if w.due > 0 {
		if due, err = schedule(ctx, system, w, s); err != nil {
			return nil, err
		}
	}
	return observe(ctx, system, w.name, w.watchesPods(), due)
}

// perform creates the workload's Jobs, unless schedules do, and returns when all have ended.
func perform(ctx context.Context, system *harness.System, w workload, s side, seen *observer) (load, error) {
	if w.due > 0 {
		err := seen.wait(ctx, w.due, system.Broken)
		return load{pods: w.pods(), jobs: seen.seen()}, err
	}
	jobs := w.objects(s.managedBy)
	step := len(jobs)
	if w.inTurn {
		step = 1
	}
	for n := 0; n < len(jobs); n += step {
		if n > 0 {
			if err := bulk.Rest(ctx, pause); err != nil {
				return load{}, err
			}
		}
		if err := seen.create(ctx, system, w.name, jobs[n:n+step]); err != nil {
			return load{}, err
		}
		if err := seen.wait(ctx, n+step, system.Broken); err != nil {
			return load{}, err
		}
	}
	return load{pods: w.pods(), jobs: seen.seen()}, nil
}

// verify holds every Job's counts against its size: fast and wrong is no result.
func verify(ctx context.Context, system *harness.System, w workload) (err error) {
	if w.due > 0 {
		return verifyDue(ctx, system, w)
	}
	for i, b := range w.jobs {
		for n := range b.count {
			j, getErr := system.Client.BatchV1().Jobs(w.name).Get(ctx, w.nameOf(i, n), metav1.GetOptions{})
			if getErr != nil {
				return getErr
			}
			err = errors.Join(err, b.check(j))
		}
	}
	return err
}

// check returns an error unless the Job has ended as it should, and each of its Pods is counted once.
func (b batch) check(j *batchv1.Job) error {
	succeeded, failed, end := int32(b.completions), int32(0), batchv1.JobComplete
	if b.failing {
		succeeded, failed, end = 0, int32(b.completions), batchv1.JobFailed
	}
	left := ptr.Deref(j.Status.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	if j.Status.Succeeded != succeeded || j.Status.Failed != failed || j.Status.Active != 0 || len(left.Succeeded)+len(left.Failed) > 0 || !harness.Is(j, end) {
		return fmt.Errorf("%s should be %s with succeeded=%d failed=%d, and is: %s", j.Name, end, succeeded, failed, harness.Brief(j.Status))
	}
	return nil
}
