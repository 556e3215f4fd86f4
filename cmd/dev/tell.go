package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/cmd/dev/manifests"
	"github.com/jobstream/jobstream/cmd/dev/show"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/app"
)

const (
	// showEvery is the interval between redraws: short enough to look like motion, and cheap.
	showEvery = 100 * time.Millisecond
	// applyEvery is the pause between two Jobs, so that the story is readable and each Job has the machine to itself while it
	// starts.
	applyEvery = 300 * time.Millisecond

	// victim is the Job whose reconciler is killed once that many of its Pods have been counted.
	victim      = "harvest"
	victimAfter = 7
)

// tell applies the Jobs and the schedule, and shows what happens until all is over.
func (d *demo) tell(ctx context.Context, observations <-chan observation, received <-chan events.Public) error {
	schedules, err := dynamic.NewForConfig(d.system.rest)
	if err != nil {
		return &app.Fatal{Cannot: "make a client for ScheduledJobs", Err: err}
	}
	d.schedules = schedules.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(demoNamespace)
	if err := d.applySchedule(ctx); err != nil { // the first object of a new kind takes the API server two seconds
		return err
	}
	next := time.NewTicker(applyEvery)
	defer next.Stop()
	again := time.NewTicker(showEvery)
	defer again.Stop()
	for !d.story.JobsOver() || !d.story.Schedule.Over() {
		select {
		case <-next.C:
			err = d.step(ctx)
		case s := <-observations:
			if d.take(s); d.toBeKilled(s) {
				err = d.crash(ctx)
			}
		case e := <-received:
			d.say(d.story.Received(e, time.Now()))
		case <-again.C:
			d.screen.Draw(d.board.Frame(time.Now(), d.screen.Style()))
		case err = <-d.system.failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	d.screen.Draw(d.board.Frame(time.Now(), d.screen.Style()))
	return nil
}

// say prints a line for each moment.
func (d *demo) say(moments []show.Moment) {
	for _, m := range moments {
		d.screen.Say(d.story.Line(m))
	}
}

// take records an observation, and prints what is worth telling. The board has no line for a run of the schedule.
func (d *demo) take(s observation) {
	if s.job == nil {
		d.say(d.story.SawPod(s.pod, s.gone, s.at))
		d.board.SawPod(s.pod, s.gone)
		return
	}
	d.say(d.story.SawJob(s.job, s.at))
	if d.story.Knows(s.job.Name) {
		d.board.SawJob(s.job, s.at)
	}
}

// step does the next thing, if it is due: it applies a Job, suspends the schedule, or checks whether the reconciler has processed
// the suspension.
func (d *demo) step(ctx context.Context) error {
	switch {
	case len(d.ahead) > 0:
		return d.applyNext(ctx)
	case !d.story.JobsOver():
		return nil
	case !d.suspended:
		return d.suspend(ctx)
	}
	o, err := d.schedules.Get(ctx, schedule, metav1.GetOptions{})
	if err != nil {
		return &app.Fatal{Cannot: "read ScheduledJob " + schedule, Err: err}
	}
	s, err := scheduledJob(o)
	if err == nil {
		d.story.SawSchedule(s)
	}
	return err
}

// applyNext applies the next Job, as "kubectl apply" would, if the Job that it depends on is over.
func (d *demo) applyNext(ctx context.Context) error {
	if after := exhibits[len(exhibits)-len(d.ahead)].after; after != "" && !d.story.JobOver(after) {
		return nil
	}
	j := d.ahead[0]
	d.ahead = d.ahead[1:]
	created, err := d.system.client.BatchV1().Jobs(demoNamespace).Create(ctx, j, metav1.CreateOptions{})
	if err != nil {
		return &app.Fatal{Cannot: "apply Job " + j.Name, Err: err}
	}
	d.take(observation{at: time.Now(), job: created})
	return nil
}

// applySchedule applies the ScheduledJob.
func (d *demo) applySchedule(ctx context.Context) error {
	s, err := manifests.ScheduledJob(schedule)
	if err != nil {
		return err
	}
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return err
	}
	created, err := d.schedules.Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
	if err != nil {
		return &app.Fatal{Cannot: "apply ScheduledJob " + s.Name, Err: err}
	}
	if s, err = scheduledJob(created); err != nil {
		return err
	}
	d.story.Began = time.Now()
	moments, err := d.story.Scheduled(s, time.Now())
	d.say(moments)
	return err
}

// scheduledJob converts the object to its type.
func scheduledJob(o *unstructured.Unstructured) (*v1alpha1.ScheduledJob, error) {
	s := &v1alpha1.ScheduledJob{}
	return s, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, s)
}

// suspend ends the schedule; Jobs that have started run to their end.
func (d *demo) suspend(ctx context.Context) error {
	d.suspended = true
	d.say([]show.Moment{{At: time.Now(), Who: schedule, Text: "suspended: a run that is under way goes on to its end"}})
	if _, err := d.schedules.Patch(ctx, schedule, types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}); err != nil {
		return &app.Fatal{Cannot: "suspend ScheduledJob " + schedule, Err: err}
	}
	return nil
}

// toBeKilled reports whether this observation is the first of the victim with enough Pods counted.
func (d *demo) toBeKilled(s observation) bool {
	return d.story.Crash == nil && s.job != nil && s.job.Name == victim && show.Accounted(&s.job.Status) >= victimAfter
}

// crash kills the reconciler, reads the victim's status while none runs, and starts another.
func (d *demo) crash(ctx context.Context) error {
	at := time.Now()
	dead, err := d.system.killReconciler()
	if err != nil {
		return err
	}
	j, err := d.system.client.BatchV1().Jobs(demoNamespace).Get(ctx, victim, metav1.GetOptions{})
	if err != nil {
		return &app.Fatal{Cannot: "read Job " + victim, Err: err}
	}
	if err := d.system.startReconciler(app.Off); err != nil {
		return &app.Fatal{Cannot: "start another reconciler", Err: err}
	}
	d.say(d.story.Crashed(j, dead, d.system.plan.Killable.process.ID(), at))
	return nil
}
