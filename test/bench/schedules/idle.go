package main

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// knowWait is how long to wait until all idle schedules are observed.
	knowWait = 30 * time.Minute
	// calm is how long the programs have to come to rest before their CPU time counts.
	calm = 20 * time.Second
)

// template is of a Job that is never made.
var template = batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
	RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox", Command: []string{"true"}}},
}}}}

// idleRow is what one program uses.
type idleRow struct {
	name                string
	before, after, late report.Usage // without any schedule; with all of them known; a while later
}

// idleResult is what idle schedules cost.
type idleResult struct {
	count, known     int
	made, knew, over time.Duration
	rows             []idleRow
}

// idleness measures what jobstream's programs use while very many schedules are not due. They are yearly, and their time is half
// a year from now.
func (o options) idleness(ctx context.Context, c *bulk.Cluster) error {
	r := idleResult{count: o.idle, over: o.cpu}
	parts := []*harness.Process{c.Triggers[0], c.Reconcilers[0], c.NATS.Process}
	for _, p := range parts {
		u, err := report.UsageOf(p.Path)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, idleRow{name: p.Name, before: u})
	}
	if err := o.know(ctx, c, &r); err != nil {
		return err
	}
	if err := c.Pass(ctx, "coming to rest", time.Now().Add(calm)); err != nil {
		return err
	}
	from := time.Now()
	for i, p := range parts {
		var err error
		if r.rows[i].after, err = report.UsageOf(p.Path); err != nil {
			return err
		}
	}
	if err := c.Pass(ctx, "measuring CPU time", from.Add(o.cpu)); err != nil {
		return err
	}
	for i, p := range parts {
		var err error
		if r.rows[i].late, err = report.UsageOf(p.Path); err != nil {
			return err
		}
	}
	printIdle(r)
	return nil
}

// know creates the schedules and waits until they are observed.
func (o options) know(ctx context.Context, c *bulk.Cluster, r *idleResult) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespace, err := bulk.NewNamespace(ctx, c.System)
	if err != nil {
		return err
	}
	decided, err := c.WatchScheduledJobs(ctx, namespace, bulk.Decided)
	if err != nil {
		return err
	}
	began := time.Now()
	month := (began.UTC().Month()+5)%12 + 1
	spec := v1alpha1.ScheduledJobSpec{Schedule: fmt.Sprintf("0 0 1 %d *", month), JobTemplate: template}
	if err := c.Make(ctx, "idle ScheduledJobs", o.idle, c.ScheduledJobs(spec, func(int) string { return namespace })); err != nil {
		return err
	}
	r.made = time.Since(began)
	if err := c.Await(ctx, "idle ScheduledJobs decided", decided.Count, o.idle, began.Add(knowWait)); err != nil {
		return err
	}
	r.knew, r.known = time.Since(began), decided.Count()
	return nil
}
