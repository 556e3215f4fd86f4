package kubectl

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/next"
	"github.com/jobstream/jobstream/internal/zone"
)

// suspendCommand is "suspend", or "resume", with its flags.
type suspendCommand struct {
	*selection
	resume, force bool
}

func newSuspend(t *tool) *cobra.Command {
	s := &suspendCommand{selection: newSelection(t, v1alpha1.ScheduledJobKind, jobKind)}
	command := &cobra.Command{
		Use:   "suspend {NAME... | [jobs] [scheduledjobs] {-l SELECTOR | -A}}",
		Short: "Stop Jobs without losing what they have done, or keep ScheduledJobs from creating any",
		Long: `Stop Jobs without losing what they have done, or keep ScheduledJobs from creating any. A name without a kind is a ScheduledJob's if
there is one, else a Job's.

A Job's Pods are deleted, its counts stay, and "resume" goes on with what is left. To end it for good: kubectl delete job NAME.
Jobs that a ScheduledJob has made already go on. -l and -A select only jobstream's Jobs.`,
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
	s := &suspendCommand{selection: newSelection(t, v1alpha1.ScheduledJobKind, jobKind), resume: true}
	command := &cobra.Command{
		Use:   "resume {NAME... | [jobs] [scheduledjobs] {-l SELECTOR | -A}}",
		Short: "Let suspended Jobs and ScheduledJobs go on",
		Long: `Let suspended Jobs and ScheduledJobs go on. A name without a kind is a ScheduledJob's if there is one, else a Job's.

A ScheduledJob makes no Jobs for the times that have passed while it was suspended. One that pauseAfterFailures has paused is
resumed, too. What jobstream itself has suspended, and
labelled jobstream.dev/suspended-by, is left alone unless --force is given. -l and -A select only jobstream's Jobs.`,
		Example: `  kubectl jobstream resume job/pi
  kubectl jobstream resume -l app=shop

  # What "jobstream-reconciler drain" has suspended, when jobstream is back
  kubectl jobstream resume scheduledjobs -A -l jobstream.dev/suspended-by=drain --force`,
		RunE: func(command *cobra.Command, args []string) error { return s.run(command.Context(), args) },
	}
	s.flags(command)
	command.Flags().BoolVar(&s.force, "force", false, "also resume what jobstream itself has suspended")
	return command
}

func (s *suspendCommand) run(ctx context.Context, args []string) error {
	c, found, err := s.find(ctx, args)
	if err != nil {
		return err
	}
	return s.each(ctx, found, func(o target) error { return s.one(ctx, c, o) })
}

// one suspends or resumes one object, unless it is so already or has finished.
func (s *suspendCommand) one(ctx context.Context, c *client, o target) error {
	switch {
	case o.finished:
		fmt.Fprintf(s.ErrOut, "%s has finished: nothing is left to %s\n", o, s.verb())
		return nil
	case s.resume && !o.suspended && !o.paused:
		fmt.Fprintf(s.ErrOut, "%s is not suspended\n", o)
		return s.unchanged(o)
	case !s.resume && o.suspended:
		fmt.Fprintf(s.ErrOut, "%s is suspended already\n", o)
		return s.unchanged(o)
	case s.resume && o.suspendedBy != "" && !s.force:
		return fmt.Errorf("%s was suspended by %q (label %s): %s", o, o.suspendedBy, v1alpha1.SuspendedByLabel, o.instead())
	}
	options, mode := s.patchOptions()
	if s.resume && !o.suspended && o.paused { // any edit of the spec ends a pause: this one changes nothing in the end
		if _, err := c.setSuspended(ctx, o, true, options); err != nil && !replaced(err) {
			return c.answered(fmt.Sprintf("cannot resume %s", o), err)
		}
	}
	changed, err := c.setSuspended(ctx, o, !s.resume, options)
	switch {
	case s.gone(err):
		fmt.Fprintf(s.ErrOut, "%s has been deleted meanwhile: nothing is left to %s\n", o, s.verb())
		return nil
	case replaced(err):
		return fmt.Errorf("cannot %s %s: it has been deleted or created again meanwhile: look at it, and repeat the command", s.verb(), o)
	case err != nil:
		return c.answered(fmt.Sprintf("cannot %s %s", s.verb(), o), err)
	}
	s.report(changed, "%s %s%s", o, s.done(), mode)
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

// tell prints what a user might not expect of a ScheduledJob.
func (s *suspendCommand) tell(o target) {
	if o.scheduled == nil {
		return
	}
	if n := len(o.scheduled.Status.Active); !s.resume && n > 0 {
		jobs := make([]string, n)
		for i, j := range o.scheduled.Status.Active {
			jobs[i] = "job/" + j.Name
		}
		fmt.Fprintf(s.ErrOut, "the Jobs it has made go on; suspend them, too, with: kubectl jobstream suspend -n %s %s\n", o.namespace, strings.Join(jobs, " "))
	}
	if !s.resume {
		return
	}
	now := time.Now()
	switch times, err := next.Times(o.project(), zone.Load, now, 1); {
	case err != nil:
		fmt.Fprintf(s.ErrOut, "warning: %s makes no Jobs: %v\n", o, err)
	case len(times) == 0:
		fmt.Fprintf(s.ErrOut, "warning: %s makes no more Jobs: times that passed while it was suspended are skipped\n", o)
	default:
		fmt.Fprintf(s.ErrOut, "times that passed while it was suspended are skipped; the next Job starts at %s\n", times[0].At.Format(time.RFC3339))
	}
}
