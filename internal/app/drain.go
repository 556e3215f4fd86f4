package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/internal/flags"
)

const (
	// drainRestMin and drainRestMax bound the time between two lists while drain waits; between them it is drainRestFactor
	// times as long as the last look took, so that a cluster of many Jobs is not kept busy by the question.
	drainRestMin, drainRestMax = time.Second, 30 * time.Second
	drainRestFactor            = 10
	// forever is --wait without a time.
	forever = "forever"
)

// drain is the command with its flags.
type drain struct {
	cluster.Leaving
	out                  io.Writer
	json                 bool
	suspend, yes, waits  bool
	limit                time.Duration // limit of the wait; 0 for none
	waited, told         string        // the flag; the last line of progress
	suspended, untouched []change
}

// change is the result of suspending one ScheduledJob, in its JSON form.
type change struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Error     string `json:"error,omitempty"`
}

// DrainCommand helps to leave a cluster without losing anything.
func DrainCommand() *cobra.Command {
	d := &drain{}
	c := ask(OfReconciler(), &cobra.Command{
		Use:   "drain",
		Short: "List what would stay unfinished without jobstream, and wait until nothing is left",
		Long: `drain lists what would stay unfinished if no reconciler ran any more: jobstream's unfinished Jobs, ScheduledJobs that may
make new ones, and Pods whose finalizer only jobstream removes. It needs the API server and not the bus, and it deletes nothing. The
exit code is 0 if nothing is left, else 1. docs/uninstall.md describes what to do then.

While it waits, trigger and reconciler must run, because they finish the Jobs.`,
		Example: `  # Look, with the rights of the reconciler
  kubectl -n jobstream exec deploy/jobstream-reconciler -- /jobstream-reconciler drain

  # Make no new Jobs any more, and wait for those that there are, for an hour at most
  jobstream-reconciler drain --kubeconfig ~/.kube/config --suspend-schedules --yes --wait=1h`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, a *command, out io.Writer, _ []string) error {
		if err := d.complete(); err != nil {
			return err
		}
		d.out, d.json = out, a.output == "json"
		if err := d.reach(a); err != nil {
			return err
		}
		return d.run(ctx)
	})
	f := c.Flags()
	f.StringVar(&d.waited, "wait", "", "wait until nothing is left, for so long at most; without a `time` for as long as it takes. ScheduledJobs that are not suspended are not waited for")
	f.Lookup("wait").NoOptDefVal = forever
	f.BoolVar(&d.suspend, "suspend-schedules", false, "suspend every ScheduledJob that is not suspended: times that pass meanwhile are skipped, and never caught up on. Needs --yes")
	f.BoolVar(&d.yes, "yes", false, "carry out --suspend-schedules; without it, only print what would be done")
	return c
}

func (d *drain) complete() error {
	d.waits = d.waited != ""
	switch limit, err := time.ParseDuration(d.waited); {
	case d.yes && !d.suspend:
		return Usage{errors.New("--yes confirms --suspend-schedules: give both, or neither")}
	case !d.waits, d.waited == forever:
		return nil
	case err != nil:
		return Usage{fmt.Errorf("--wait: %w: write a time with its unit, such as --wait=30m, or --wait alone", err)}
	case limit <= 0:
		return Usage{fmt.Errorf("--wait=%s is no time to wait: write one above 0, such as --wait=30m, or --wait alone", d.waited)}
	default:
		d.limit = limit
		return nil
	}
}

// reach makes the clients. It sends no request.
func (d *drain) reach(a *command) (err error) {
	client, config, err := cluster.NewClient(cluster.ClientConfig{Kubeconfig: a.Kubeconfig, Context: a.Context, UserAgent: "jobstream-drain/" + Version()})
	if err != nil {
		return &Fatal{Cannot: "reach the API server", Err: err,
			Remedy: "name a kubeconfig with --kubeconfig (" + flags.EnvName("kubeconfig") + ", KUBECONFIG), or run in a Pod that has a service account"}
	}
	d.Client, d.Claim, d.Namespaces = client, a.claim(), a.Namespaces
	d.ScheduledJobs, err = cluster.NewScheduledJobs(config)
	return err
}

func (d *drain) run(ctx context.Context) error {
	left, err := d.Remains(ctx)
	if err != nil {
		return &Fatal{Cannot: "look for what is left", Err: err, Remedy: "drain needs to list ScheduledJobs, Jobs and Pods of all namespaces, or of those that --namespaces (" + flags.EnvName("namespaces") + ") names"}
	}
	if d.suspend && d.yes {
		d.suspendAll(ctx, left.ScheduledJobs)
		if left, err = d.Remains(ctx); err != nil {
			return &Fatal{Cannot: "look for what is left", Err: err, Remedy: "run it again: what is suspended stays suspended"}
		}
	}
	if d.waits {
		left = d.wait(ctx, left)
	}
	if err := d.report(left); err != nil {
		return err
	}
	var errs []error
	if n := len(d.untouched); n > 0 {
		errs = append(errs, fmt.Errorf("%d of %d ScheduledJobs were not suspended", n, n+len(d.suspended)))
	}
	if d.suspend && !d.yes && len(left.ScheduledJobs) > 0 {
		errs = append(errs, errors.New("nothing was changed: add --yes to suspend what is listed"))
	}
	if !left.Empty() {
		errs = append(errs, errors.New(sum(left)))
	}
	return errors.Join(errs...)
}

// suspendAll continues after a failure.
func (d *drain) suspendAll(ctx context.Context, all []cluster.RemainingSchedule) {
	for _, s := range all {
		if s.Suspended {
			continue
		}
		c := change{Namespace: s.Namespace, Name: s.Name}
		if err := d.Suspend(ctx, s); err != nil {
			c.Error = err.Error()
			d.untouched = append(d.untouched, c)
			continue
		}
		d.suspended = append(d.suspended, c)
	}
}

// wait lists until nothing is left for which waiting helps, or the time is over, and returns what is left. If the API server does
// not respond, the previous list counts.
func (d *drain) wait(ctx context.Context, left cluster.Remains) cluster.Remains {
	if d.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.limit)
		defer cancel()
	}
	for took := time.Duration(0); hopeful(left); {
		d.tell(sum(left))
		rest := time.NewTimer(min(max(drainRestMin, took*drainRestFactor), drainRestMax))
		select {
		case <-ctx.Done():
			rest.Stop()
			return left
		case <-rest.C:
		}
		began := time.Now()
		now, err := d.Remains(ctx)
		took = time.Since(began)
		if err == nil {
			left = now
		} else if ctx.Err() == nil {
			d.tell("cannot look, and will again: " + oneLine(err.Error()))
		}
	}
	return left
}

// hopeful reports whether something is left that may end by itself.
func hopeful(r cluster.Remains) bool {
	for _, s := range r.ScheduledJobs {
		if s.Suspended { // a reconciler still has to process the suspension
			return true
		}
	}
	return len(r.Jobs)+len(r.Pods) > 0
}

// tell prints a line of progress, unless it repeats the previous one.
func (d *drain) tell(line string) {
	if d.json || line == d.told {
		return
	}
	d.told = line
	fmt.Fprintln(d.out, time.Now().UTC().Format(time.TimeOnly), printable(line))
}
