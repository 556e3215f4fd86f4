package kubectl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// runCommand is "run" with its flags.
type runCommand struct {
	*maker
	options         run.Options
	lists           []string // KEY=VALUES, as typed
	completions     int32
	parallelism     int32
	backoffLimit    int32
	backoffSeconds  int32
	failedPodsLimit int32
}

func newRun(t *tool) *cobra.Command {
	r := &runCommand{maker: newMaker(t)}
	c := &cobra.Command{
		Use:   "run NAME --image=IMAGE [flags] [-- COMMAND [ARGS...]]",
		Short: "Run a command as a Job, for each value of a list, or at a time",
		Long: `Run a command as a Job of Kubernetes: once, several times at once, once for each value of a list, or at a time.

The kubelet replaces $(NAME) in the command by the variable NAME; the image needs no shell for that. Put it in single
quotes, for to your own shell it means something else. $NAME works in a shell only: -- sh -c 'echo $NAME'.`,
		Example: `  # One command, once; wait for it and see what it prints
  kubectl jobstream run pi --image=perl --logs -- perl -Mbignum=bpi -wle 'print bpi(100)'

  # One Pod for each value of a list
  kubectl jobstream run process-files --image=busybox --per-completion-env=F="a.dat b.dat c.dat" -- echo '$(F)'

  # Two lists: each Pod has one value of each
  kubectl jobstream run say-fruit --image=busybox --per-completion-env=FRUIT="apple banana cherry" --per-completion-env=COLOR="green yellow red" -- echo 'Have a nice $(COLOR) $(FRUIT)'

  # A list from a file or a pipe, one value on each line
  seq 20 | kubectl jobstream run squares --image=busybox --per-completion-env=N=@- --parallelism=4 -- sh -c 'echo $((N * N))'

  # Three Pods that know which they are; failed ones are replaced after 5 seconds
  kubectl jobstream run say-number --image=busybox --completions=3 --completion-index-var-name=I --backoff-seconds=5 -- sh -c 'echo "My index is $I"'

  # Once at a time, and every night
  kubectl jobstream run once --image=busybox --run-at=2030-12-24T18:00:00Z -- echo hello
  kubectl jobstream run nightly --image=busybox --run-at="30 2 * * *" --time-zone=Europe/Berlin -- echo hello

  # The manifests, to keep or to change
  kubectl jobstream run process-files --image=busybox --per-completion-env=F="a.dat b.dat c.dat" --dry-run=client -o yaml -- echo '$(F)'`,
		Args: func(c *cobra.Command, args []string) error { return r.takeArgs(args, c.ArgsLenAtDash()) },
		RunE: func(c *cobra.Command, _ []string) error {
			r.takeNumbers(c.Flags())
			return r.run(c.Context())
		},
	}
	r.addFlags(c)
	return c
}

func (r *runCommand) addFlags(c *cobra.Command) {
	f, o := c.Flags(), &r.options
	f.SetNormalizeFunc(aliases)
	f.SortFlags = false
	f.StringVar(&o.Image, "image", "", "`image` of the container")
	f.Int32Var(&r.completions, "completions", 0, "`number` of Pods that must succeed, each with an index from 0 on; a list implies it")
	f.Int32Var(&r.parallelism, "parallelism", 0, fmt.Sprintf("`number` of Pods that run at once (default: all completions, at most %d)", run.DefaultParallelism))
	f.StringArrayVar(&r.lists, "per-completion-env", nil, "`KEY=VALUES`: a variable with a value for each index: KEY=\"a b c\", or KEY=@FILE with one on each line (@- reads standard input); may be repeated")
	f.StringVar(&o.IndexVariable, "completion-index-var-name", "", "`name` of a variable that holds the index")
	f.StringArrayVar(&o.Env, "env", nil, "`NAME=VALUE`: a variable for all Pods; may be repeated")
	f.StringVar(&o.Restart, "restart", "", "`policy` for a command that fails: OnFailure runs it again in its Pod, Never makes a new Pod (default OnFailure; Never with --backoff-seconds or --failed-pods-limit)")
	f.Int32Var(&r.backoffLimit, "backoff-limit", 0, "`number` of failures after which the Job fails (default: Kubernetes', 6)")
	f.Int32Var(&r.backoffSeconds, "backoff-seconds", 0, "`seconds` before a failed Pod is replaced, 1 to 600; they double each time (default 10)")
	f.Int32Var(&r.failedPodsLimit, "failed-pods-limit", 0, "`number` of failed Pods that are kept, 0 to 1000 (default: all)")
	f.StringVar(&o.RunAt, "run-at", "", "`time` such as 2026-12-24T18:00:00Z, or a schedule such as \"30 2 * * *\": makes a ScheduledJob (also --runAt)")
	f.StringVar(&o.TimeZone, "time-zone", "", "`zone` of the schedule, such as Europe/Berlin (default UTC)")
	r.maker.addFlags(c)
}

// takeArgs reads NAME and the command.
func (r *runCommand) takeArgs(args []string, dash int) error {
	before := args
	if dash >= 0 {
		before, r.options.Command = args[:dash], args[dash:]
		if len(r.options.Command) == 0 {
			return usage{errors.New("nothing follows --: write the command there, as in -- echo hello, or leave out --")}
		}
	}
	switch {
	case len(before) > 1:
		return usage{fmt.Errorf("%q: write -- before the command, as in: run %s --image=%s -- %s", strings.Join(before[1:], " "), before[0], imageOr(r.options.Image), strings.Join(before[1:], " "))}
	case len(before) == 1:
		r.options.Name = before[0]
	}
	return nil
}

func imageOr(image string) string {
	if image == "" {
		return "IMAGE"
	}
	return image
}

// takeNumbers sets the numeric options whose flags were given.
func (r *runCommand) takeNumbers(f *pflag.FlagSet) {
	o := &r.options
	for name, to := range map[string]struct {
		value *int32
		given **int32
	}{
		"completions":       {&r.completions, &o.Completions},
		"parallelism":       {&r.parallelism, &o.Parallelism},
		"backoff-limit":     {&r.backoffLimit, &o.BackoffLimit},
		"backoff-seconds":   {&r.backoffSeconds, &o.BackoffSeconds},
		"failed-pods-limit": {&r.failedPodsLimit, &o.FailedPodsLimit},
	} {
		if f.Changed(name) {
			*to.given = to.value
		}
	}
}

// run runs the steps of "run", in order.
func (r *runCommand) run(ctx context.Context) error {
	objects, err := r.build()
	if err != nil {
		return err
	}
	if r.tell(objects); r.dryRun == "client" {
		return r.show(objects.Manifests())
	}
	c, err := r.connect()
	if err != nil {
		return err
	}
	return r.make(ctx, c, objects)
}

// build reads the files, and builds the objects.
func (r *runCommand) build() (run.Objects, error) {
	if err := r.checkFlags(); err != nil {
		return run.Objects{}, err
	}
	namespace, explicit, err := r.namespace()
	if err != nil {
		return run.Objects{}, unusable(err)
	}
	if explicit {
		r.options.Namespace = namespace
	}
	if r.options.PerCompletionEnv, err = r.readLists(); err != nil {
		return run.Objects{}, usage{err}
	}
	r.options.Suffix = r.suffix()
	objects, err := run.Build(r.options)
	if err != nil {
		return run.Objects{}, usage{err}
	}
	return objects, nil
}

func (r *runCommand) checkFlags() error {
	if (r.wait || r.logs) && r.options.RunAt != "" && r.dryRun == "none" {
		return usage{fmt.Errorf("--wait and --logs are for a Job that runs now: leave them out, and follow the ScheduledJob with: kubectl describe scheduledjob %s", r.options.Name)}
	}
	return r.check()
}

// readLists reads the files that the lists name.
func (r *runCommand) readLists() (lists []run.List, err error) {
	stdin := ""
	for _, arg := range r.lists {
		key, text, err := run.SplitKey(arg)
		if err != nil {
			return nil, err
		}
		l := run.List{Key: key, Text: text}
		if file, named := strings.CutPrefix(text, "@"); named {
			var b []byte
			if l.File = file; file == "-" {
				if stdin != "" {
					return nil, fmt.Errorf("--per-completion-env: %s and %s both read standard input: put one of the lists into a file", stdin, key)
				}
				stdin, l.File = key, "standard input"
				b, err = io.ReadAll(r.In)
			} else {
				b, err = os.ReadFile(file)
			}
			if err != nil {
				return nil, fmt.Errorf("--per-completion-env=%s: cannot read the list: %w; the word after @ is the name of a file", key, err)
			}
			l.Text = string(b)
		}
		lists = append(lists, l)
	}
	return lists, nil
}
