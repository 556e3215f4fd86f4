package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/replay"
)

const (
	// lastDecisions is how many decisions are shown by default.
	lastDecisions = 20
	// mostRecord is the size of the largest record that is read: more than all facts that a stream keeps by default.
	mostRecord = 2 << 30
)

// reconcilerFlags are flags of the reconciler that change what it decides, by the same names.
func reconcilerFlags(f *pflag.FlagSet, into *replay.Flags) {
	f.BoolVar(&into.EventPods, "event-pods", false, "the reconciler runs with --event-pods")
	f.BoolVar(&into.TTLAfterFinished, "ttl-after-finished", false, "the reconciler runs with --ttl-after-finished")
	f.DurationVar(&into.PodFailureBackoffBase, "pod-failure-backoff-base", 0, "the reconciler's `time` of that name, if it is not the default")
	f.DurationVar(&into.PodFailureBackoffMax, "pod-failure-backoff-max", 0, "the reconciler's `time` of that name, if it is not the default")
}

// decisionsCommand is "decisions" with its flags.
type decisionsCommand struct {
	*tool
	nats   *natsServer
	flags  replay.Flags
	last   int
	output string
}

func newDecisions(t *tool) *cobra.Command {
	d := &decisionsCommand{tool: t}
	command := &cobra.Command{
		Use:   "decisions NAME",
		Short: "Show what the reconciler has decided about a Job or a ScheduledJob, from NATS",
		Long: `Show what the reconciler has decided about a Job or a ScheduledJob: which facts arrived when, what it decided, and what it waits for now.

NATS keeps the facts for three days. They are folded again by the same function as in the reconciler, in this program; what the API server
answered is taken from the facts that followed. What it refused is in no fact, and shows only as an effect that was not done. An object that is
gone is found by its last public event. With -o json, it prints all of that as a file for "replay -f".`,
		Example: `  # Why is nothing happening?
  kubectl jobstream decisions pi

  # Everything, for another person to look at; it has no Pod template, environment or Secret
  kubectl jobstream decisions pi -o json > pi.json`,
		Args: exactlyOne("decisions"),
		RunE: func(c *cobra.Command, args []string) error { return d.run(c.Context(), args[0]) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.IntVar(&d.last, "last", lastDecisions, "how many `decisions`, 0 for all")
	f.StringVarP(&d.output, "output", "o", "text", "`format`: text or json")
	f.Lookup("output").Annotations = map[string][]string{formatsAnnotation: {"text", "json"}}
	reconcilerFlags(f, &d.flags)
	d.nats = newNATSServer(command)
	return command
}

// exactlyOne refuses any other number of arguments than one.
func exactlyOne(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage{fmt.Errorf("%s is about one object: write the name of a Job or a ScheduledJob, or job/NAME", verb)}
		}
		return nil
	}
}

func (d *decisionsCommand) run(ctx context.Context, arg string) error {
	switch {
	case d.output != "text" && d.output != "json":
		return usage{fmt.Errorf("--output=%s: write text or json", d.output)}
	case d.last < 0:
		return usage{fmt.Errorf("--last=%d is none: write 0 for all, or how many", d.last)}
	}
	r, err := d.nats.record(ctx, d.tool, arg, d.flags)
	if err != nil {
		return err
	}
	if d.output == "json" {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		line, err := safeJSON(text)
		if err == nil {
			_, err = fmt.Fprintln(d.Out, line)
		}
		return err
	}
	transcript, err := replay.Fold(r)
	if err != nil {
		return err
	}
	return transcript.WriteDecisions(d.Out, d.last)
}

// record reads what the bus holds about the object that the argument names.
func (n *natsServer) record(ctx context.Context, t *tool, arg string, f replay.Flags) (replay.Record, error) {
	names, err := kindsAndNames([]string{arg}, v1alpha1.ScheduledJobKind, jobKind)
	if err != nil {
		return replay.Record{}, usage{err}
	}
	r, err := n.collect(ctx, t, names[0])
	r.Flags = f
	return r, err
}

// replayCommand is "replay" with its flags.
type replayCommand struct {
	*tool
	nats  *natsServer
	flags replay.Flags
	file  string
}

func newReplay(t *tool) *cobra.Command {
	p := &replayCommand{tool: t}
	command := &cobra.Command{
		Use:   "replay {NAME | -f FILE}",
		Short: "Fold the stored facts about a Job or a ScheduledJob again, and print the transcript",
		Long: `Fold the stored facts about a Job or a ScheduledJob again, through the same function as in the reconciler, and print the transcript in the form
of those in functions/job/testdata: what happened, a line of dashes, and what was decided. So a question about a cluster is answered on another
machine, under a debugger if need be. With -f it reads a file that "decisions -o json" has written, and needs neither NATS nor a cluster.`,
		Example: `  kubectl jobstream replay pi

  # Somewhere else, from a file
  kubectl jobstream decisions pi -o json > pi.json
  kubectl jobstream replay -f pi.json`,
		Args: func(c *cobra.Command, args []string) error {
			if p.file != "" && len(args) > 0 {
				return usage{fmt.Errorf("%s and --filename at once: leave one of them out", args[0])}
			}
			if p.file != "" {
				return nil
			}
			return exactlyOne("replay")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return p.run(c, args) },
	}
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&p.file, "filename", "f", "", "`file` that \"decisions -o json\" has written, - for standard input")
	reconcilerFlags(f, &p.flags)
	p.nats = newNATSServer(command)
	return command
}

func (p *replayCommand) run(c *cobra.Command, args []string) error {
	var r replay.Record
	var err error
	if p.file != "" {
		r, err = p.read(c.Flags())
	} else {
		r, err = p.nats.record(c.Context(), p.tool, args[0], p.flags)
	}
	if err != nil {
		return err
	}
	transcript, err := replay.Fold(r)
	if err != nil {
		return err
	}
	return transcript.WriteScript(p.Out)
}

// read reads the record from the file. Flags that were given replace those in it.
func (p *replayCommand) read(f *pflag.FlagSet) (replay.Record, error) {
	in := p.In
	if p.file != "-" {
		file, err := os.Open(p.file)
		if err != nil {
			return replay.Record{}, fmt.Errorf("cannot read the facts: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, mostRecord+1))
	switch {
	case err != nil:
		return replay.Record{}, fmt.Errorf("cannot read the facts: %w", err)
	case len(text) > mostRecord:
		return replay.Record{}, errors.New("cannot read the facts: the file has more than 2 GiB")
	}
	r, err := replay.Read(text)
	if err != nil {
		return r, fmt.Errorf("%s: %w", p.file, err)
	}
	for flag, set := range map[string]func(){
		"event-pods":               func() { r.Flags.EventPods = p.flags.EventPods },
		"ttl-after-finished":       func() { r.Flags.TTLAfterFinished = p.flags.TTLAfterFinished },
		"pod-failure-backoff-base": func() { r.Flags.PodFailureBackoffBase = p.flags.PodFailureBackoffBase },
		"pod-failure-backoff-max":  func() { r.Flags.PodFailureBackoffMax = p.flags.PodFailureBackoffMax },
	} {
		if f.Changed(flag) {
			set()
		}
	}
	return r, nil
}
