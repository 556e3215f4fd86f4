package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/kubectl/next"
	tables "github.com/jobstream/jobstream/internal/kubectl/table"
	"github.com/jobstream/jobstream/internal/zone"
)

// mostTimes is the largest number of times that "next" prints.
const mostTimes = 10_000

// nextCommand is "next" with its flags.
type nextCommand struct {
	*tool
	schedule, timeZone string
	count              int
	output             *output
}

func newNext(t *tool) *cobra.Command {
	n := &nextCommand{tool: t, output: newOutput("").withoutNames()}
	command := &cobra.Command{
		Use:   "next {SCHEDULEDJOB... | --schedule=SCHEDULE}",
		Short: "Show when ScheduledJobs are due next, or when a schedule would be",
		Long: `Show when ScheduledJobs are due next, or when a schedule would be, in the schedule's own zone.

A note marks a time that a clock change has moved, or that the clock shows twice. With --schedule no request is sent.`,
		Example: `  # A ScheduledJob, with H as it is for this one
  kubectl jobstream next nightly

  # A schedule, before there is one
  kubectl jobstream next --schedule="30 2 * * *" --time-zone=Europe/Berlin --count=3

  # For a script: the next time alone
  kubectl jobstream next nightly --count=1 -o jsonpath='{.items[0].time}'`,
		RunE: func(command *cobra.Command, args []string) error { return n.run(command.Context(), args) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.StringVar(&n.schedule, "schedule", "", "`schedule` in place of a ScheduledJob's, such as \"30 2 * * *\"")
	f.StringVar(&n.timeZone, "time-zone", "", "`zone` of --schedule, such as Europe/Berlin (default: UTC)")
	f.IntVar(&n.count, "count", 10, "how many `times`")
	n.output.addTo(command)
	return command
}

// check refuses contradictory flags before any request.
func (n *nextCommand) check(args []string) error {
	switch {
	case len(args) == 0 && n.schedule == "":
		return errors.New(`there is nothing to look at: write the name of a ScheduledJob, or --schedule="30 2 * * *"`)
	case len(args) > 0 && n.schedule != "":
		return errors.New("a name and --schedule at once: leave one of them out")
	case n.schedule == "" && n.timeZone != "":
		return errors.New("--time-zone belongs to --schedule: leave it out, a ScheduledJob has a zone of its own")
	case n.count < 1 || n.count > mostTimes:
		return fmt.Errorf("--count=%d is none: write 1 to %d", n.count, mostTimes)
	case n.schedule != "" && *n.config.Namespace != "":
		return fmt.Errorf("-n is the namespace, and --schedule has none: leave it out; the number of times to show is --count=%s", *n.config.Namespace)
	case hashed(n.schedule):
		return fmt.Errorf("--schedule=%q: H is another number for each ScheduledJob: write the number, or the name of a ScheduledJob", n.schedule)
	}
	return nil
}

// hashed reports whether the schedule uses H.
func hashed(schedule string) bool {
	for _, term := range strings.FieldsFunc(schedule, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
		if base, _, _ := strings.Cut(term, "/"); base == "H" || strings.HasPrefix(base, "H(") {
			return true
		}
	}
	return false
}

func (n *nextCommand) run(ctx context.Context, args []string) error {
	if err := n.check(args); err != nil {
		return usage{err}
	}
	printer, err := n.output.objects()
	if err != nil {
		return err
	}
	found := &nextTimes{now: time.Now()}
	if n.schedule != "" {
		found.times, err = next.Times(events.ScheduledJob{Schedule: n.schedule, TimeZone: n.timeZone, Created: found.now}, zone.Load, found.now, n.count)
		if err != nil {
			return usage{errors.New(inFlags.Replace(err.Error()))}
		}
	} else if err := n.ask(ctx, args, found); err != nil {
		return err
	}
	if printer != nil {
		return printer.PrintObj(found.list(), n.Out)
	}
	return found.table(n.Out)
}

// ask finds the times of ScheduledJobs.
func (n *nextCommand) ask(ctx context.Context, args []string, found *nextTimes) error {
	names, err := kindsAndNames(args, v1alpha1.ScheduledJobKind)
	if err != nil {
		return usage{err}
	}
	c, err := n.connect()
	if err != nil {
		return err
	}
	for _, one := range names {
		s, err := c.scheduled.get(ctx, c.namespace, one.name)
		if apierrors.IsNotFound(err) {
			return n.missing(c, one.name)
		} else if err != nil {
			return c.answered("cannot read the ScheduledJob "+one.name, err)
		}
		if err := n.add(found, s); err != nil {
			return err
		}
	}
	return nil
}

// inFlags replaces the fields of a ScheduledJob's spec by the corresponding flags.
var inFlags = strings.NewReplacer("spec.schedule", "--schedule", "spec.timeZone", "--time-zone", "the field timeZone", "--time-zone")

// missing explains that a ScheduledJob does not exist.
func (n *nextCommand) missing(c *client, name string) error {
	err := fmt.Errorf("there is no ScheduledJob %s in the namespace %s: -n chooses another", name, c.namespace)
	if ns := *n.config.Namespace; ns != "" && strings.Trim(ns, "0123456789") == "" {
		return fmt.Errorf("%w; the number of times to show is --count=%s", err, ns)
	}
	return err
}

// add adds the times of one ScheduledJob, and prints notes about it.
func (n *nextCommand) add(found *nextTimes, s *v1alpha1.ScheduledJob) error {
	j := events.ProjectScheduledJob(s)
	times, err := next.Times(j, zone.Load, found.now, n.count)
	if err != nil {
		return fmt.Errorf("the ScheduledJob %s is never due: %w", s.Name, err)
	}
	for _, at := range times {
		switch {
		case j.Suspended:
			at.Note = strings.TrimSuffix("suspended; "+at.Note, "; ")
		case j.Paused():
			at.Note = strings.TrimSuffix("paused by pauseAfterFailures; "+at.Note, "; ")
		}
		found.times, found.of = append(found.times, at), append(found.of, s)
	}
	if len(times) == 0 {
		fmt.Fprintf(n.ErrOut, "the ScheduledJob %s is not due any more\n", s.Name)
	}
	if delay := scheduledjob.Delay(j); delay > 0 {
		fmt.Fprintf(n.ErrOut, "Jobs of the ScheduledJob %s are created %v later than that: its share of jitterSeconds\n", s.Name, delay)
	}
	return nil
}

// nextTimes are the times to show.
type nextTimes struct {
	now   time.Time
	times []next.Time
	of    []*v1alpha1.ScheduledJob // the ScheduledJob of each; empty for --schedule
}

// table prints the times as a table for the user.
func (n *nextTimes) table(out io.Writer) error {
	columns := []string{"TIME", "IN", "NOTE"}
	if len(n.of) > 0 || len(n.times) == 0 {
		columns = append([]string{"SCHEDULEDJOB"}, columns...)
	}
	table := newTable(out, columns...)
	for i, at := range n.times {
		cells := []string{at.At.Format(time.RFC3339), duration.HumanDuration(at.At.Sub(n.now)), at.Note}
		if len(n.of) > 0 {
			cells = append([]string{n.of[i].Name}, cells...)
		}
		table.row(cells...)
	}
	return table.Flush()
}

// list returns an item for each time, with its ScheduledJob, for scripts.
func (n *nextTimes) list() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: []unstructured.Unstructured{}}
	for i, at := range n.times {
		item := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NominalTime", "time": at.At.Format(time.RFC3339)}
		if at.Note != "" {
			item["note"] = at.Note
		}
		if len(n.of) > 0 {
			item["scheduledJob"] = map[string]any{"namespace": n.of[i].Namespace, "name": n.of[i].Name}
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: item})
	}
	return list
}

// table writes lines of columns, as kubectl prints them.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) *table {
	t := &table{tables.NewWriter(out)}
	t.row(columns...)
	return t
}

// row writes a line; its last cells may be empty.
func (t *table) row(cells ...string) {
	fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}
