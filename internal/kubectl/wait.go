package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/internal/progress"
)

// waitCommand is "wait" with its flags.
type waitCommand struct {
	*tool
	names    []string
	selector string
	timeout  time.Duration
	output   *output
}

func newWait(t *tool) *cobra.Command {
	w := &waitCommand{tool: t, output: newOutput("")}
	c := &cobra.Command{
		Use:   "wait (JOB... | -l LABELS) [flags]",
		Short: "Wait until Jobs are complete or have failed, whichever comes first",
		Long: `Wait until Jobs are complete or have failed, whichever comes first. As soon as a Job has ended, one line reports how.

The exit code is 0 if all are complete, 1 if one has failed or was deleted, 124 after --timeout.`,
		Example: `  kubectl jobstream wait render
  kubectl jobstream wait render encode --timeout=1h
  kubectl jobstream wait -l app=render`,
		Args: func(_ *cobra.Command, args []string) error {
			w.names = jobNames(args)
			return w.check()
		},
		RunE: func(c *cobra.Command, _ []string) error { return w.run(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVarP(&w.selector, "selector", "l", "", "`labels` of the existing Jobs, in the syntax of kubectl get")
	f.DurationVar(&w.timeout, "timeout", 0, "`time` after which it ends with exit code 124, such as 5m; the Jobs go on (default: never)")
	w.output.addTo(c)
	return c
}

func (w *waitCommand) check() error {
	switch {
	case len(w.names) == 0 && w.selector == "":
		return usage{errors.New("there is no Job to wait for: write its name, or --selector=LABELS")}
	case len(w.names) > 0 && w.selector != "":
		return usage{errors.New("--selector selects the Jobs: leave it out, or the names")}
	case w.timeout < 0:
		return usage{fmt.Errorf("--timeout=%v is in the past: write a time such as 5m", w.timeout)}
	}
	return nil
}

// run waits. With -o it prints the Jobs at the end: those that have ended, in their final state.
func (w *waitCommand) run(ctx context.Context) error {
	printer, err := w.output.objects()
	if err != nil {
		return err
	}
	c, err := w.connect()
	if err != nil {
		return err
	}
	if printer == nil {
		return w.await(ctx, c, func(j *batchv1.Job, text string) { fmt.Fprintf(w.Out, "job.batch/%s %s\n", j.Name, text) })
	}
	var over []*batchv1.Job
	err = w.await(ctx, c, func(j *batchv1.Job, _ string) {
		j = j.DeepCopy()
		j.APIVersion, j.Kind = batchv1.SchemeGroupVersion.String(), jobKind
		over = append(over, j)
	})
	if len(w.names) == 1 && len(over) == 1 {
		return errors.Join(err, printer.PrintObj(over[0], w.Out))
	}
	return errors.Join(err, w.output.print(printer, asObjects(over), w.Out))
}

// await calls tell for each Job that has ended. Only Jobs that exist at the beginning count.
func (w *waitCommand) await(ctx context.Context, c *client, tell func(j *batchv1.Job, text string)) error {
	pending, bad := map[types.UID]string{}, []string{}
	begun, total := false, 0
	verdict := func(j *batchv1.Job, good bool, text string) {
		delete(pending, j.UID)
		if !good {
			bad = append(bad, j.Name)
		}
		tell(j, text)
	}
	s := someJobs{names: w.names, selector: w.selector,
		saw: func(j *batchv1.Job) {
			if !begun {
				pending[j.UID] = j.Name
				total++
			}
			if _, is := pending[j.UID]; !is {
				return
			}
			if end := ended(j); end != nil && end.Type == batchv1.JobFailed {
				verdict(j, false, fmt.Sprintf("has failed: %s (%s)", progress.Why(end.Reason, end.Message), tally(j)))
			} else if end != nil {
				verdict(j, true, "is complete: "+tally(j))
			}
		},
		gone: func(j *batchv1.Job) {
			if _, is := pending[j.UID]; is {
				verdict(j, false, "was deleted")
			}
		},
		enough: func() bool { begun = true; return len(pending) == 0 },
		lost: func(err error) {
			fmt.Fprintf(w.ErrOut, "warning: %v; trying again\n", c.unreachable("cannot see the Jobs", err))
		},
	}
	if w.timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, w.timeout, errLate)
		defer cancel()
	}
	err := c.followJobs(ctx, &s)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return exit{errors.New("interrupted: the Jobs go on"), ExitInterrupted}
	case errors.Is(err, errLate):
		return exit{fmt.Errorf("%d of %d Jobs have not ended within %v; they go on", len(pending), total, w.timeout), ExitTimeout}
	case err != nil:
		return err
	case total == 0:
		return fmt.Errorf("no Job in the namespace %s has the labels %s: kubectl get jobs -n %s --show-labels shows those that there are", c.namespace, w.selector, c.namespace)
	case len(bad) > 0:
		return exit{fmt.Errorf("not complete: %s", strings.Join(bad, ", ")), ExitFailed}
	}
	return nil
}
