package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/cmd/dev/manifests"
	"github.com/jobstream/jobstream/cmd/dev/show"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/progress/terminal"
)

const (
	// demoNamespace is there in every cluster.
	demoNamespace = "default"
	// showEvery looks like motion and costs nothing.
	showEvery = 100 * time.Millisecond
	// applyEvery lets the story begin one Job at a time, so that it can be read, and so that each has the machine to itself
	// while it starts.
	applyEvery = 300 * time.Millisecond
)

// exhibits are the Jobs of the demo, by the names of their files, and how they end.
var exhibits = []struct {
	name  string
	wants batchv1.JobConditionType
}{
	{"pi", batchv1.JobComplete},
	{"doomed", batchv1.JobFailed}, // early, since it waits for ten seconds
	{"squares", batchv1.JobComplete},
	{"queue", batchv1.JobComplete},
}

func demoCommand() *cobra.Command {
	timeout := 3 * time.Minute
	logging := app.LogOptions{Level: "warn", Format: "text"}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run real Jobs on a cluster of our own, show them live, and end",
		Example: `  jobstream-dev demo
  jobstream-dev demo > demo.txt      # plain lines`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			screen := terminal.New(c.OutOrStdout())
			log, err := logging.Logger(screen)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), timeout, fmt.Errorf("not over after %v", timeout))
			defer cancel()
			p := plan{Cluster: "demo", Node: true, Trigger: addresses{app.Off, app.Off}, Reconciler: addresses{app.Off, app.Off}, Log: log,
				Say: func(format string, args ...any) { screen.Say(fmt.Sprintf(format, args...)) }}
			return runDemo(ctx, p, screen)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "`time` after which the demo gives up")
	logging.Add(c.Flags())
	return c
}

// demo is one performance.
type demo struct {
	system *system
	screen *terminal.Screen
	story  *show.Story
	board  progress.Board
}

// runDemo starts a system, performs on it, and stops it whatever happened.
func runDemo(ctx context.Context, p plan, screen *terminal.Screen) error {
	began := time.Now()
	s, err := startSystem(ctx, p)
	if err != nil {
		return interrupted(ctx, err)
	}
	screen.Say(fmt.Sprintf("everything is up after %.1f s", time.Since(began).Seconds()), "")
	d := &demo{system: s, screen: screen, story: show.NewStory(time.Now())}
	err = interrupted(ctx, d.perform(ctx))
	return errors.Join(err, s.stop())
}

// interrupted says why the context has ended, if it has: whatever failed then failed because of it.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errors.New("interrupted")
}

// perform applies the Jobs, tells how they run, and sums up.
func (d *demo) perform(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs, err := d.load(ctx)
	if err != nil {
		return err
	}
	sights, err := watchAll(ctx, d.system.client, demoNamespace)
	if err != nil {
		return &app.Fatal{Cannot: "watch the demo", Err: err}
	}
	err = d.tell(ctx, jobs, sights)
	d.screen.Keep()
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		d.screen.Say("")
		d.screen.Say(d.story.Summary()...)
		d.screen.Say("", "more can be seen with --log-level debug")
		return err
	}
	return d.sumUp(ctx)
}

// load reads the manifests and gets the stand-in for what this machine does not have.
func (d *demo) load(ctx context.Context) ([]*batchv1.Job, error) {
	var jobs []*batchv1.Job
	for _, e := range exhibits {
		j, err := manifests.Load(e.name)
		if err != nil {
			return nil, err
		}
		if e.name == "pi" && !perlKnowsPi(ctx) {
			if err := standIn(&j.Spec.Template.Spec.Containers[0]); err != nil {
				return nil, err
			}
			d.screen.Say("there is no perl with bignum here: this program computes pi in its place")
		}
		d.story.Expect(j.Name, e.wants)
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// tell applies the Jobs and shows what happens until every one has ended.
func (d *demo) tell(ctx context.Context, jobs []*batchv1.Job, sights <-chan sight) error {
	next := time.NewTimer(0)
	defer next.Stop()
	again := time.NewTicker(showEvery)
	defer again.Stop()
	for !d.story.Over() {
		select {
		case <-next.C:
			if err := d.apply(ctx, jobs[0]); err != nil {
				return err
			}
			if jobs = jobs[1:]; len(jobs) > 0 {
				next.Reset(applyEvery)
			}
		case s := <-sights:
			d.take(s)
		case <-again.C:
			d.show()
		case err := <-d.system.failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d.show()
	return nil
}

// apply does what "kubectl apply" would.
func (d *demo) apply(ctx context.Context, j *batchv1.Job) error {
	created, err := d.system.client.BatchV1().Jobs(demoNamespace).Create(ctx, j, metav1.CreateOptions{})
	if err != nil {
		return &app.Fatal{Cannot: "apply Job " + j.Name, Err: err}
	}
	d.take(sight{at: time.Now(), job: created})
	return nil
}

// take takes in what was seen, and says what is worth it.
func (d *demo) take(s sight) {
	var moments []show.Moment
	if s.job != nil {
		moments = d.story.SawJob(s.job, s.at)
		d.board.SawJob(s.job, s.at)
	} else {
		moments = d.story.SawPod(s.pod, s.gone, s.at)
		d.board.SawPod(s.pod, s.gone)
	}
	for _, m := range moments {
		d.screen.Say(d.story.Line(m))
	}
}

// show draws how the Jobs run, or says what has changed where nothing can be redrawn.
func (d *demo) show() {
	now := time.Now()
	if d.screen.Live {
		d.screen.Draw(d.board.Frame(now, d.screen.Style()))
		return
	}
	for _, c := range d.board.Changes(now) {
		d.screen.Say(d.story.Line(show.Moment{At: now, Job: c.Job, Text: c.Text}))
	}
}

// sumUp says how it ended, shows what Pods had to say, and where to go from here.
func (d *demo) sumUp(ctx context.Context) error {
	d.screen.Say("")
	d.screen.Say(d.story.Summary()...)
	d.screen.Say("")
	for _, job := range []string{"pi", "squares"} {
		pod := d.story.PodOf(job)
		line, err := firstLine(ctx, d.system.client.CoreV1().Pods(demoNamespace).GetLogs(pod, &corev1.PodLogOptions{}))
		if err != nil {
			return &app.Fatal{Cannot: "read the log of Pod " + pod, Err: err}
		}
		d.screen.Say(fmt.Sprintf("kubectl logs %s:  %s", pod, shorten(line, 60)))
	}
	d.screen.Say("")
	if !d.story.AsExpected() {
		return errors.New("not every Job ended as expected: see the table")
	}
	d.screen.Say("All Jobs ended as expected.",
		"\"make dev\" keeps such a cluster up until Ctrl-C, and says how to point kubectl at it; the manifests are in cmd/dev/manifests.")
	return nil
}
