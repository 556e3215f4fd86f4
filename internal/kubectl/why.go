package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/finding"
	"github.com/jobstream/jobstream/internal/kubectl/why"
)

// whyCommand is "why" with its flags.
type whyCommand struct {
	*tool
	output *output
}

func newWhy(t *tool) *cobra.Command {
	w := &whyCommand{tool: t, output: newOutput("").withoutNames()}
	command := &cobra.Command{
		Use:   "why {JOB | SCHEDULEDJOB | KIND/NAME}",
		Short: "Explain what a Job or ScheduledJob waits for, or how it ended",
		Long: `Explain what a Job or ScheduledJob waits for, why it did not run, or how it ended: a line for each cause, the first of which is what
to look at first, and below it what to do.

It reads the object, the Pods of the Job, and Warning Events about them; for a ScheduledJob also its active Jobs and the last one
that ended. It changes nothing. A name without a kind is that of a ScheduledJob if there is one, else of a Job.

The exit code is 0 once the question is answered, whatever the answer is.`,
		Example: `  # A Job that does not run, or that has failed
  kubectl jobstream why render

  # A schedule that has created no Job
  kubectl jobstream why scheduledjob/nightly

  # For a script: the first cause in a few words
  kubectl jobstream why render -o jsonpath='{.findings[0].check}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage{errors.New("write the name of one Job or ScheduledJob, as in: why JOB; for a whole namespace write: doctor")}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return w.run(command.Context(), args[0]) },
	}
	command.Flags().SortFlags = false
	w.output.addTo(command)
	return command
}

func (w *whyCommand) run(ctx context.Context, arg string) error {
	names, err := kindsAndNames([]string{arg}, v1alpha1.ScheduledJobKind, jobKind)
	if err != nil {
		return usage{err}
	}
	printer, err := w.output.objects()
	if err != nil {
		return err
	}
	c, err := w.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, whyTimeout)
	defer cancel()
	o, err := c.targetExplained(ctx, names[0])
	if err != nil {
		return err
	}
	read := whyReader{client: c, now: w.now}
	var answer why.Answer
	if o.scheduled != nil {
		answer = read.schedule(ctx, o.scheduled).Explain()
	} else {
		answer = read.job(ctx, o.job).Explain()
	}
	if printer != nil {
		return printer.PrintObj(explanation(answer), w.Out)
	}
	return printAnswer(w.Out, answer)
}

// targetExplained gets the object. A user who may not read ScheduledJobs can still ask about a Job.
func (c *client) targetExplained(ctx context.Context, n named) (target, error) {
	o, err := c.targetNamed(ctx, n)
	if n.kind == "" && apierrors.IsForbidden(err) {
		if j, second := c.targetNamed(ctx, named{jobKind, n.name}); second == nil {
			return j, nil
		}
	}
	return o, err
}

// printAnswer prints the answer for people: the object in one line, then the causes in order, each with what to do below it.
func printAnswer(out io.Writer, a why.Answer) error {
	kind := "job/"
	if a.Kind == v1alpha1.ScheduledJobKind {
		kind = "scheduledjob/"
	}
	lines := fmt.Sprintf("%s%s: %s (%s)\n", kind, a.Name, a.State, a.Progress)
	for i, f := range a.Findings {
		lines += fmt.Sprintf("\n%d. %s: %s\n", i+1, f.Check, f.Found)
		if f.Advice != "" {
			lines += "   -> " + f.Advice + "\n"
		}
	}
	_, err := io.WriteString(out, lines)
	return err
}

// explanation returns the answer as an object, for scripts.
func explanation(a why.Answer) *unstructured.Unstructured {
	causes := []any{}
	for _, f := range a.Findings {
		cause := map[string]any{"check": f.Check, "status": f.Level.String(), "found": f.Found}
		if f.Advice != "" {
			cause["advice"] = f.Advice
		}
		causes = append(causes, cause)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Explanation",
		"object": map[string]any{"kind": a.Kind, "namespace": a.Namespace, "name": a.Name, "uid": string(a.UID)},
		"state":  a.State, "progress": a.Progress, "findings": causes}}
}

// unread returns a finding about what could not be read: the answer may lack the cause.
func (c *client) unread(what string, err error) finding.Finding {
	advice := "ask again; without it a cause may be missing"
	if apierrors.IsForbidden(err) {
		advice = "ask an administrator for list on " + what + " in this namespace; without it a cause may be missing"
	}
	return finding.Worry("not read", finding.Warn, advice, "%v", c.answered("cannot list the "+what, err))
}
