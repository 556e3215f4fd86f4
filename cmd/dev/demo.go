package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/jobstream/jobstream/cmd/dev/manifests"
	"github.com/jobstream/jobstream/cmd/dev/show"
	"github.com/jobstream/jobstream/internal/app"
	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/progress/terminal"
)

const (
	// demoNamespace exists in every cluster.
	demoNamespace = "default"
	// schedule is the name of the ScheduledJob and of its file.
	schedule = "ticker"
)

// exhibit is a Job of the demo.
type exhibit struct {
	name  string // of the Job and its file
	wants batchv1.JobConditionType
	after string // apply it only after this Job is over; "" for no dependency
}

// exhibits are in the order in which they are applied.
var exhibits = []exhibit{
	{"pi", batchv1.JobComplete, ""},
	{"doomed", batchv1.JobFailed, ""}, // first, because it waits for ten seconds
	{"squares", batchv1.JobComplete, ""},
	{"queue", batchv1.JobComplete, ""},
	{victim, batchv1.JobComplete, "squares"},
}

func demoCommand() *cobra.Command {
	timeout := 3 * time.Minute
	logging := app.LogOptions{Level: "warn", Format: "text"}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run real Jobs on a cluster of our own, show them live, kill their reconciler, and end",
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
				Killable: &killable{Out: screen, Flags: []string{"--log-level=" + logging.Level, "--log-format=" + logging.Format}},
				Say:      func(format string, args ...any) { screen.Say(fmt.Sprintf(format, args...)) }}
			return runDemo(ctx, p, screen)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "`time` after which the demo gives up")
	logging.Add(c.Flags())
	return c
}

// demo is one run of the demo.
type demo struct {
	system *system
	screen *terminal.Screen
	story  *show.Story
	board  progress.Board

	schedules dynamic.ResourceInterface
	ahead     []*batchv1.Job // still to be applied
	suspended bool           // whether the schedule is
}

// runDemo starts a system, runs the demo on it, and stops it in any case.
func runDemo(ctx context.Context, p plan, screen *terminal.Screen) error {
	began := time.Now()
	s, err := startSystem(ctx, p)
	if err != nil {
		return interrupted(ctx, err)
	}
	screen.Say(fmt.Sprintf("everything is up after %.1f s", time.Since(began).Seconds()), "")
	d := &demo{system: s, screen: screen, story: &show.Story{}}
	err = interrupted(ctx, d.perform(ctx))
	return errors.Join(err, s.stop())
}

// interrupted returns the cause of the context's end, if it has ended: any other error is then a consequence.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errors.New("interrupted")
}

// perform applies the Jobs and the schedule, shows how they run, and sums up.
func (d *demo) perform(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.load(ctx); err != nil {
		return err
	}
	observations, err := watchAll(ctx, d.system.client, demoNamespace)
	if err != nil {
		return &app.Fatal{Cannot: "watch the demo", Err: err}
	}
	received, unsubscribe, err := subscribe(ctx, d.system.nats.URL(), d.system.plan.Cluster, d.system.plan.Log)
	if err != nil {
		return &app.Fatal{Cannot: "subscribe to public events", Err: err}
	}
	defer unsubscribe()
	err = d.tell(ctx, observations, received)
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

// load reads the manifests, and replaces what this machine does not have.
func (d *demo) load(ctx context.Context) error {
	for _, e := range exhibits {
		j, err := manifests.Job(e.name)
		if err != nil {
			return err
		}
		if e.name == "pi" && !perlKnowsPi(ctx) {
			if err := standIn(&j.Spec.Template.Spec.Containers[0]); err != nil {
				return err
			}
			d.screen.Say("this machine has no perl with bignum: this program computes pi instead")
		}
		d.story.Expect(j.Name, e.wants)
		d.ahead = append(d.ahead, j)
	}
	return nil
}

// sumUp prints the results, the output of a Pod, and where to go from here.
func (d *demo) sumUp(ctx context.Context) error {
	d.screen.Say("")
	d.screen.Say(d.story.Summary()...)
	d.screen.Say("")
	exact, err := d.holdAgainstPods(ctx)
	if err != nil {
		return err
	}
	d.screen.Say(d.story.Crash.Summary(exact)...)
	d.screen.Say("")
	d.screen.Say(d.story.Schedule.Summary()...)
	d.screen.Say("")
	for _, job := range []string{"pi", "squares"} {
		pod := d.story.PodOf(job)
		log, err := d.logOf(ctx, pod)
		if err != nil {
			return err
		}
		d.screen.Say(fmt.Sprintf("kubectl logs %s:  %s", pod, shorten(log, 60)))
	}
	d.screen.Say("")
	switch {
	case !d.story.AsExpected():
		return errors.New("not everything ended as expected: see the tables")
	case len(exact.Faults) > 0:
		return errors.New("the counts are not exact: see above")
	}
	d.screen.Say("All Jobs ended as expected.",
		"\"make dev\" keeps such a cluster up until Ctrl-C, and prints how to point kubectl at it.", "The manifests are in cmd/dev/manifests.")
	return nil
}

// logOf returns the output of a Pod's container.
func (d *demo) logOf(ctx context.Context, pod string) (string, error) {
	stream, err := d.system.client.CoreV1().Pods(demoNamespace).GetLogs(pod, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return "", &app.Fatal{Cannot: "read the log of Pod " + pod, Err: err}
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil {
		return "", &app.Fatal{Cannot: "read the log of Pod " + pod, Err: err}
	}
	return string(text), nil
}

// holdAgainstPods compares the status of the Job whose reconciler was killed with its Pods and their logs.
func (d *demo) holdAgainstPods(ctx context.Context) (show.Exact, error) {
	j, err := d.system.client.BatchV1().Jobs(demoNamespace).Get(ctx, victim, metav1.GetOptions{})
	if err != nil {
		return show.Exact{}, &app.Fatal{Cannot: "read Job " + victim, Err: err}
	}
	pods, err := d.system.client.CoreV1().Pods(demoNamespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(j.Spec.Selector)})
	if err != nil {
		return show.Exact{}, &app.Fatal{Cannot: "list the Pods of Job " + victim, Err: err}
	}
	var witnesses []show.Witness
	for _, p := range pods.Items {
		log, err := d.logOf(ctx, p.Name)
		if err != nil {
			return show.Exact{}, err
		}
		witnesses = append(witnesses, show.Witness{Pod: &p, Log: log})
	}
	return d.story.Exact(j, witnesses), nil
}
