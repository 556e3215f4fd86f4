package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/next"
	"github.com/jobstream/jobstream/internal/zone"
)

// suspendCommand is "suspend", or "resume", with its flags.
type suspendCommand struct {
	*tool
	resume           bool
	selector, dryRun string
	all, force       bool
}

func newSuspend(t *tool) *cobra.Command {
	s := &suspendCommand{tool: t}
	command := &cobra.Command{
		Use:   "suspend {NAME... | [jobs] [scheduledjobs] {-l SELECTOR | -A}}",
		Short: "Stop Jobs without losing what they have done, or keep ScheduledJobs from making any",
		Long: `Stop Jobs without losing what they have done, or keep ScheduledJobs from making any. A name without a kind is a ScheduledJob's if
there is one, else a Job's.

A Job's Pods are deleted, its counts stay, and "resume" goes on with what is left. To end it for good: kubectl delete job NAME.
Jobs that a ScheduledJob has made already go on. -l and -A leave Jobs alone that are not jobstream's.`,
		Example: `  kubectl jobstream suspend job/pi
  kubectl jobstream suspend scheduledjob/nightly

  # Whatever belongs to an application: its ScheduledJobs, and its Jobs that run
  kubectl jobstream suspend -l app=shop

  # All ScheduledJobs of the cluster: would it be allowed?
  kubectl jobstream suspend scheduledjobs -A --dry-run=server`,
		RunE: func(command *cobra.Command, args []string) error { return s.run(command.Context(), args) },
	}
	s.flags(command)
	return command
}

func newResume(t *tool) *cobra.Command {
	s := &suspendCommand{tool: t, resume: true}
	command := &cobra.Command{
		Use:   "resume {NAME... | [jobs] [scheduledjobs] {-l SELECTOR | -A}}",
		Short: "Let suspended Jobs and ScheduledJobs go on",
		Long: `Let suspended Jobs and ScheduledJobs go on. A name without a kind is a ScheduledJob's if there is one, else a Job's.

A ScheduledJob makes no Jobs for the times that have passed while it was suspended. What jobstream itself has suspended, and
labelled jobstream.dev/suspended-by, is left alone unless --force is given. -l and -A leave Jobs alone that are not jobstream's.`,
		Example: `  kubectl jobstream resume job/pi
  kubectl jobstream resume -l app=shop

  # What "jobstream-reconciler drain" has suspended, when jobstream is back
  kubectl jobstream resume scheduledjobs -A -l jobstream.dev/suspended-by=drain --force`,
		RunE: func(command *cobra.Command, args []string) error { return s.run(command.Context(), args) },
	}
	s.flags(command)
	command.Flags().BoolVar(&s.force, "force", false, "also what jobstream has suspended")
	return command
}

func (s *suspendCommand) flags(command *cobra.Command) {
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&s.selector, "selector", "l", "", "`labels` of the objects, such as app=shop")
	f.BoolVarP(&s.all, "all-namespaces", "A", false, "all objects of the cluster, or those that -l selects")
	f.StringVar(&s.dryRun, "dry-run", "none", "`how`: none, or server (ask the API server whether it would work, change nothing)")
}

// check refuses what makes no sense, before anything is asked, and returns what is named, or of which kinds all are meant.
func (s *suspendCommand) check(args []string) (names []named, kinds []string, err error) {
	both := []string{v1alpha1.ScheduledJobKind, jobKind}
	switch {
	case s.dryRun != "none" && s.dryRun != "server":
		return nil, nil, fmt.Errorf("--dry-run=%s: write none or server", s.dryRun)
	case len(args) == 0 && s.selector == "" && !s.all:
		return nil, nil, errors.New("nothing is named: write NAME, job/NAME, scheduledjob/NAME, -l SELECTOR, or -A for all of the cluster")
	case s.selector == "" && !s.all:
		names, err = kindsAndNames(args, both...)
		return names, nil, err
	}
	for _, arg := range args {
		kind, known := kindCalled(arg, both)
		if !known {
			return nil, nil, fmt.Errorf("%s: names do not go together with -l and -A: leave one of them out, or write jobs or scheduledjobs", arg)
		}
		kinds = append(kinds, kind)
	}
	if len(kinds) == 0 {
		kinds = both
	}
	return nil, kinds, nil
}

func (s *suspendCommand) run(ctx context.Context, args []string) error {
	names, kinds, err := s.check(args)
	if err != nil {
		return usage{err}
	}
	c, err := s.connect()
	if err != nil {
		return err
	}
	var found []target
	if names != nil {
		found, err = c.targetsNamed(ctx, names)
	} else {
		namespace := c.namespace
		if s.all {
			namespace = metav1.NamespaceAll
		}
		found, err = c.targetsSelected(ctx, kinds, namespace, s.selector)
	}
	if err != nil {
		return err
	}
	if len(found) == 0 {
		fmt.Fprintln(s.ErrOut, "warning: nothing is selected: -l and -A choose among ScheduledJobs and unfinished Jobs that are jobstream's")
	}
	return s.each(ctx, c, found)
}

// each goes through all of them, also where one fails.
func (s *suspendCommand) each(ctx context.Context, c *client, found []target) error {
	var failed []error
	for _, o := range found {
		if err := s.one(ctx, c, o); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(s.ErrOut, "error:", err)
	}
	return fmt.Errorf("%d of %d are as they were", len(failed), len(found))
}

// one suspends or resumes one object, if there is anything to do.
func (s *suspendCommand) one(ctx context.Context, c *client, o target) error {
	switch {
	case o.finished:
		fmt.Fprintf(s.ErrOut, "%s has finished: nothing is left to %s\n", o, s.verb())
		return nil
	case s.resume && !o.suspended:
		fmt.Fprintf(s.ErrOut, "%s is not suspended\n", o)
		return nil
	case !s.resume && o.suspended:
		fmt.Fprintf(s.ErrOut, "%s is suspended already\n", o)
		return nil
	case s.resume && o.suspendedBy != "" && !s.force:
		return fmt.Errorf("%s was suspended by %q (label %s): %s", o, o.suspendedBy, v1alpha1.SuspendedByLabel, o.instead())
	}
	options := metav1.PatchOptions{FieldManager: fieldManager}
	mode := ""
	if s.dryRun == "server" {
		options.DryRun, mode = []string{metav1.DryRunAll}, " (server dry run)"
	}
	switch err := c.setSuspended(ctx, o, !s.resume, options); {
	case replaced(err):
		return fmt.Errorf("cannot %s %s: it has been deleted, or made anew, meanwhile: look at it, and do it again", s.verb(), o)
	case err != nil:
		return c.answered(fmt.Sprintf("cannot %s %s", s.verb(), o), err)
	}
	fmt.Fprintf(s.Out, "%s %s%s\n", o, s.done(), mode)
	s.tell(o)
	return nil
}

func (s *suspendCommand) verb() string {
	if s.resume {
		return "resume"
	}
	return "suspend"
}

func (s *suspendCommand) done() string {
	if s.resume {
		return "resumed"
	}
	return "suspended"
}

// tell says what a user might not expect of a ScheduledJob.
func (s *suspendCommand) tell(o target) {
	if o.scheduled == nil {
		return
	}
	if n := len(o.scheduled.Status.Active); !s.resume && n > 0 {
		jobs := make([]string, n)
		for i, j := range o.scheduled.Status.Active {
			jobs[i] = "job/" + j.Name
		}
		fmt.Fprintf(s.ErrOut, "what it has made goes on; that, too, is suspended by: kubectl jobstream suspend -n %s %s\n", o.namespace, strings.Join(jobs, " "))
	}
	if !s.resume {
		return
	}
	now := time.Now()
	switch times, err := next.Times(o.project(), zone.Load, now, 1); {
	case err != nil:
		fmt.Fprintf(s.ErrOut, "warning: %s makes no Jobs: %v\n", o, err)
	case len(times) == 0:
		fmt.Fprintf(s.ErrOut, "warning: %s makes no Job any more: what has passed while it was suspended is skipped\n", o)
	default:
		fmt.Fprintf(s.ErrOut, "what has passed while it was suspended is skipped; the next Job comes at %s\n", times[0].At.Format(time.RFC3339))
	}
}
