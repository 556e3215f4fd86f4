package kubectl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/list"
	"github.com/jobstream/jobstream/internal/progress/terminal"
	"github.com/jobstream/jobstream/internal/zone"
)

// listCommand is "list" with its flags.
type listCommand struct {
	*tool
	selector string
	all      bool
	output   *output
}

func newList(t *tool) *cobra.Command {
	l := &listCommand{tool: t, output: newOutput("", wide)}
	command := &cobra.Command{
		Use:   "list [-A] [-l SELECTOR]",
		Short: "List ScheduledJobs: what needs you first, then by their next times",
		Long: `List ScheduledJobs: first those that create no Jobs, then those whose last run has failed, then those that have missed a time, and then
all others by their next times.

It takes one list of ScheduledJobs, in pages. "history" shows what became of the times of one of them.`,
		Example: `  kubectl jobstream list
  kubectl jobstream list -A -o wide

  # For a script: the names, in the same order
  kubectl jobstream list -l app=shop -o name`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage{fmt.Errorf("%s: list shows all ScheduledJobs of the namespace: leave the name out; for one ScheduledJob write: kubectl jobstream history %s", args[0], args[0])}
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return l.run(command.Context()) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&l.selector, "selector", "l", "", "`labels` of the ScheduledJobs, such as app=shop")
	f.BoolVarP(&l.all, "all-namespaces", "A", false, "list all namespaces")
	l.output.addTo(command)
	return command
}

func (l *listCommand) run(ctx context.Context) error {
	printer, err := l.output.objects()
	if err != nil {
		return err
	}
	c, err := l.connect()
	if err != nil {
		return err
	}
	where := "in the namespace " + c.namespace
	if l.all {
		c.namespace, where = metav1.NamespaceAll, "in this cluster"
	}
	found := &list.List{Now: l.now(), Zones: zone.Load}
	err = c.eachScheduledJob(ctx, l.selector, found.Add)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("this cluster does not know ScheduledJobs: ask an administrator to install them with: kubectl apply -k deploy/crd")
	case err != nil:
		return c.answered("cannot list the ScheduledJobs", err)
	}
	objects := found.Objects()
	if printer != nil {
		for _, s := range objects {
			s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind
		}
		return l.output.print(printer, asObjects(objects), l.Out)
	}
	if len(objects) == 0 {
		fmt.Fprintln(l.ErrOut, l.nothing(where))
		return nil
	}
	style := terminal.New(l.Out).Style()
	if l.output.format() == wide {
		style.Width = 0
	}
	return printLines(l.Out, found.Lines(list.View{Namespaces: l.all, Wide: l.output.format() == wide, Style: style}))
}

// nothing reports that no ScheduledJob was found, and what to type instead.
func (l *listCommand) nothing(where string) string {
	switch {
	case l.selector != "":
		return fmt.Sprintf("no ScheduledJob %s has the labels %s", where, l.selector)
	case l.all:
		return fmt.Sprintf(`no ScheduledJobs %s: kubectl jobstream run NAME --run-at="30 2 * * *" --image=IMAGE -- COMMAND makes one`, where)
	}
	return fmt.Sprintf(`no ScheduledJobs %s: -A lists all namespaces, and -n chooses another`, where)
}

// printLines prints the lines.
func printLines(out io.Writer, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
