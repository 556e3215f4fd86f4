package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/kubectl/backfill"
	"github.com/jobstream/jobstream/internal/kubectl/run"
	"github.com/jobstream/jobstream/internal/zone"
)

// backfillCommand is "backfill" with its flags.
type backfillCommand struct {
	*tool
	schedule    string
	given       backfill.Range
	env         []string
	parallelism int
	keepGoing   bool
	again       bool
	dryRun      string
	waitsFor    string    // the last reason to wait that was printed
	last        time.Time // end of the range
}

func newBackfill(t *tool) *cobra.Command {
	b := &backfillCommand{tool: t}
	c := &cobra.Command{
		Use:   "backfill SCHEDULEDJOB --from=TIME [--to=TIME] [flags]",
		Short: "Make up for nominal times of a ScheduledJob that have passed",
		Long: `Make up for nominal times of a ScheduledJob that have passed: one Job for each, in order, from the current template. Its containers
read that time, and not the present one. Left out is a time whose Job exists, or of which the status remembers that it has run. The status remembers the latest ten verdicts.

Both ends belong to the range. A day such as 2026-11-01 is in the zone of the schedule, and means all of it.`,
		Example: `  # What would be made
  kubectl jobstream backfill nightly --from=2026-11-01 --to=2026-11-14 --dry-run

  # Three at once, and on also if one fails
  kubectl jobstream backfill nightly --from=2026-11-01 --parallelism=3 --keep-going`,
		Args: func(_ *cobra.Command, args []string) (err error) {
			if b.schedule, err = oneScheduledJob("backfill", args); err == nil {
				err = b.check()
			}
			if err != nil {
				return usage{err}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return b.run(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&b.given.From, "from", "", "`time` of the first, such as 2026-11-01 or 2026-11-01T02:30:00Z")
	f.StringVar(&b.given.To, "to", "", "`time` of the last (default: up to which the schedule has decided everything)")
	f.StringArrayVar(&b.env, "env", nil, "`NAME=VALUE`: a variable for all containers, in place of the template's; may be repeated")
	f.IntVar(&b.parallelism, "parallelism", 1, "`number` of Jobs that run at once")
	f.BoolVar(&b.keepGoing, "keep-going", false, "go on after a Job has failed")
	f.BoolVar(&b.again, "again", false, "also make Jobs of nominal times that have run, by what the status remembers")
	f.StringVar(&b.dryRun, "dry-run", "none", "`how`: none, client (only list the times), or server (have the API server check every Job, and keep none)")
	f.Lookup("dry-run").NoOptDefVal = "client"
	return c
}

func (b *backfillCommand) check() error {
	switch {
	case b.parallelism < 1:
		return fmt.Errorf("--parallelism=%d: write how many Jobs run at once, 1 or more", b.parallelism)
	case b.dryRun != "none" && b.dryRun != "client" && b.dryRun != "server":
		return fmt.Errorf("--dry-run=%s is none: write --dry-run=client or --dry-run=server", b.dryRun)
	}
	if err := run.CheckEnv(b.env); err != nil {
		return err
	}
	return b.given.Check()
}

func (b *backfillCommand) run(ctx context.Context) error {
	c, err := b.connect()
	if err != nil {
		return err
	}
	sj, err := c.scheduledJob(ctx, b.schedule)
	if err != nil {
		return err
	}
	if err := b.suits(sj); err != nil {
		return err
	}
	runs, err := backfill.Runs(sj, zone.Load, b.given, time.Now())
	if err != nil {
		return err
	}
	if b.dryRun != "none" {
		return b.list(ctx, c, sj, runs)
	}
	w := backfill.New(runs, b.again)
	if n := w.Unknown(); n > 0 {
		fmt.Fprintf(b.ErrOut, "note: the status does not remember what became of %d of the %d nominal times; what has run before runs again unless its Job exists\n", n, len(runs))
	}
	b.last = runs[len(runs)-1].Nominal
	w.Parallelism, w.KeepGoing = b.parallelism, b.keepGoing
	w.Alone = sj.Spec.ConcurrencyPolicy.OneAtATime()
	return b.told(ctx, w, b.follow(ctx, c, sj, w))
}

// suits refuses a backfill that the ScheduledJob's own concurrencyPolicy would break.
func (b *backfillCommand) suits(sj *v1alpha1.ScheduledJob) error {
	policy := sj.Spec.ConcurrencyPolicy
	switch {
	case policy == v1alpha1.ReplaceConcurrent && !ptr.Deref(sj.Spec.Suspend, false):
		return fmt.Errorf("concurrencyPolicy of the ScheduledJob %s is Replace, and its next nominal time would delete what the backfill has started: suspend it before, with: kubectl jobstream suspend scheduledjob/%s", sj.Name, sj.Name)
	case policy.OneAtATime() && b.parallelism > 1:
		return usage{fmt.Errorf("--parallelism=%d: concurrencyPolicy of the ScheduledJob %s is %s, and one Job runs at once: leave it out", b.parallelism, sj.Name, policy)}
	}
	return nil
}

// job builds the Job of one nominal time.
func (b *backfillCommand) job(sj *v1alpha1.ScheduledJob, r backfill.Run) *batchv1.Job {
	j := scheduledjob.BuildBackfill(sj, r.Nominal, v1alpha1.DefaultManagedBy, r.Nominal.Location())
	run.SetEnv(&j.Spec.Template.Spec, b.env)
	return ofRun(j)
}

// list prints the Jobs that the backfill would create, and those that exist.
func (b *backfillCommand) list(ctx context.Context, c *client, sj *v1alpha1.ScheduledJob, runs []backfill.Run) error {
	table := newTable(b.Out, "NOMINAL TIME", "JOB", "VERDICT", "BACKFILL")
	for _, r := range runs {
		what := "create"
		if r.Ran && !b.again {
			what = "leave out: it has run"
		}
		old, err := c.BatchV1().Jobs(c.namespace).Get(ctx, r.Job, metav1.GetOptions{})
		switch {
		case err == nil:
			if what = "exists, runs"; ended(old) != nil {
				what = "exists, " + string(ended(old).Type)
			}
			if !metav1.IsControlledBy(old, sj) {
				what = "impossible: the name is taken"
			}
		case !apierrors.IsNotFound(err):
			return c.answered("cannot read the Job "+r.Job, err)
		case b.dryRun == "server" && what == "create":
			j := b.job(sj, r)
			if _, err := c.createOne(ctx, j, metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}); err != nil {
				return c.refused(j, err)
			}
			what = "create (the API server agrees)"
		}
		verdict := r.Verdict
		if verdict == "" {
			verdict = "unknown"
		}
		table.row(r.Nominal.Format(time.RFC3339), r.Job, verdict, what)
	}
	return table.Flush()
}

// goOn returns the command line that resumes the backfill at that time. The range ends where the original one ends: the Jobs of
// later times belong to the schedule, which made them meanwhile even if the history limit has deleted them since.
func (b *backfillCommand) goOn(from time.Time) string {
	line := fmt.Sprintf("kubectl jobstream backfill %s --from=%s --to=%s", b.schedule, from.Format(time.RFC3339), b.last.Format(time.RFC3339))
	add := func(flag, value string) {
		line += fmt.Sprintf(" --%s='%s'", flag, strings.ReplaceAll(value, "'", `'\''`))
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"namespace", b.config.Namespace}, {"context", b.config.Context}, {"cluster", b.config.ClusterName}, {"user", b.config.AuthInfoName}, {"kubeconfig", b.config.KubeConfig}} {
		if value := ptr.Deref(f.value, ""); value != "" {
			add(f.name, value)
		}
	}
	for _, e := range b.env {
		add("env", e)
	}
	if b.parallelism > 1 {
		line += fmt.Sprintf(" --parallelism=%d", b.parallelism)
	}
	if b.keepGoing {
		line += " --keep-going"
	}
	if b.again {
		line += " --again"
	}
	return line
}

// told prints the summary, and the command to resume with if something is left to do.
func (b *backfillCommand) told(ctx context.Context, w *backfill.Work, err error) error {
	goOn := ""
	if from, left := w.Rest(); left {
		goOn = "; to go on: " + b.goOn(from)
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return exit{fmt.Errorf("interrupted, and Jobs that run go on: %v%s", w, goOn), ExitInterrupted}
	case err != nil:
		return fmt.Errorf("%w\n%v%s", err, w, goOn)
	case w.Failed() > 0:
		return exit{fmt.Errorf("%v%s", w, goOn), ExitFailed}
	}
	fmt.Fprintln(b.ErrOut, w)
	return nil
}
