package kubectl

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/history"
	"github.com/jobstream/jobstream/internal/progress/terminal"
	"github.com/jobstream/jobstream/internal/zone"
)

// historyCommand is "history" with its flags.
type historyCommand struct {
	*tool
	name   string
	since  time.Duration
	failed bool
	nats   *natsServer
	output *output

	// object is the ScheduledJob, nil if it was deleted.
	object *v1alpha1.ScheduledJob
}

func newHistory(t *tool) *cobra.Command {
	h := &historyCommand{tool: t, output: newOutput("", wide).withoutNames()}
	command := &cobra.Command{
		Use:   "history SCHEDULEDJOB",
		Short: "Show what became of each time of a ScheduledJob, and how its Jobs ended",
		Long: `Show what became of each time of a ScheduledJob, and how its Jobs ended: a cell for each time, and a line for each verdict, the newest
last.

The status has the last ten verdicts; more Jobs may still exist. With --nats-url, all that the stream of public events holds is
shown, of a week unless an operator has changed that, and a ScheduledJob that was deleted, too.`,
		Example: `  kubectl jobstream history nightly

  # What went wrong in the last day
  kubectl jobstream history nightly --failed --since=24h

  # All that the stream of public events holds of the last three days
  export JOBSTREAM_NATS_URL=tls://nats.jobstream:4222 JOBSTREAM_NATS_USER_FILE=user JOBSTREAM_NATS_PASSWORD_FILE=password
  kubectl jobstream history nightly --since=72h

  # For a script: how long each Job took, in seconds
  kubectl jobstream history nightly -o jsonpath='{range .items[*]}{.time} {.job.durationSeconds}{"\n"}{end}'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage{fmt.Errorf("history shows one ScheduledJob: write its name, as in: %s nightly; \"kubectl jobstream list\" has the names", c.CommandPath())}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return h.run(command.Context(), args) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.DurationVar(&h.since, "since", 0, "only of the last `time`, such as 24h (default: all that is known)")
	f.BoolVar(&h.failed, "failed", false, "only what went wrong: Jobs that failed or were deleted, and times without the Job that they should have had")
	h.output.addTo(command)
	h.nats = newNATSServer(command)
	return command
}

func (h *historyCommand) run(ctx context.Context, args []string) error {
	names, err := kindsAndNames(args, v1alpha1.ScheduledJobKind)
	switch {
	case err != nil:
		return usage{err}
	case h.since < 0:
		return usage{fmt.Errorf("--since=%v lies in the future: write how long ago, such as 24h", h.since)}
	}
	h.name = names[0].name
	streamed, err := h.nats.given()
	if err != nil {
		return err
	}
	printer, err := h.output.objects()
	if err != nil {
		return err
	}
	c, err := h.connect()
	if err != nil {
		return err
	}
	known := history.New()
	if err := h.ask(ctx, c, known); err != nil {
		return err
	}
	note := "note: the last ten verdicts, and the Jobs that still exist; with --nats-url, all that the stream holds"
	if streamed {
		if note, err = h.read(ctx, c.namespace, known); err != nil {
			return err
		}
	}
	all := known.Ticks(h.uid(known))
	ticks := h.wanted(all)
	if printer != nil {
		return printer.PrintObj(history.Objects(ticks), h.Out)
	}
	if err := h.show(ticks, len(all)); err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(h.ErrOut, note)
	}
	return nil
}

// ask learns what the API server knows of the ScheduledJob. Without a stream of public events, it must exist.
func (h *historyCommand) ask(ctx context.Context, c *client, known *history.History) error {
	s, err := c.scheduled.get(ctx, c.namespace, h.name)
	switch {
	case apierrors.IsNotFound(err) && h.nats.config.URL != "":
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no ScheduledJob %s in the namespace %s: -n chooses another; with --nats-url, history also shows one that was deleted", h.name, c.namespace)
	case err != nil:
		return c.answered("cannot read the ScheduledJob "+h.name, err)
	}
	h.object = s
	known.SawStatus(s)
	if err := c.eachJob(ctx, ofScheduledJob(s), func(j *batchv1.Job) { known.SawJob(j) }); err != nil {
		fmt.Fprintln(h.ErrOut, "warning: durations and reasons are missing:", c.answered("cannot list the Jobs", err))
	}
	return nil
}

// uid returns the UID of the ScheduledJob; of one that was deleted, that of the newest verdict on one of its name.
func (h *historyCommand) uid(known *history.History) types.UID {
	if h.object != nil {
		return h.object.UID
	}
	of, _ := known.Newest()
	return of.UID
}

// wanted returns the ticks that the flags ask for.
func (h *historyCommand) wanted(all []history.Tick) []history.Tick {
	return slices.DeleteFunc(slices.Clone(all), func(t history.Tick) bool {
		return h.failed && !t.Bad() || h.since > 0 && !t.After(h.now().Add(-h.since))
	})
}

// show prints the ticks for people.
func (h *historyCommand) show(ticks []history.Tick, known int) error {
	switch {
	case known == 0:
		fmt.Fprintf(h.ErrOut, "no time of the ScheduledJob %s has a verdict yet: \"kubectl jobstream next %s\" shows when it is due\n", h.name, h.name)
		return nil
	case len(ticks) == 0:
		fmt.Fprintf(h.ErrOut, "%d verdicts are known, and none of them is what the flags ask for: leave out --failed or --since\n", known)
		return nil
	}
	v := history.View{Name: h.name, Now: h.now(), Zone: time.UTC, All: h.output.format() == wide, Style: terminal.New(h.Out).Style()}
	if h.object != nil {
		if at, err := zone.Load(ptr.Deref(h.object.Spec.TimeZone, "")); err == nil {
			v.Zone = at
		}
	}
	if v.All {
		v.Style.Width = 0
	}
	return printLines(h.Out, v.Lines(ticks))
}
