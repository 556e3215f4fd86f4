package kubectl

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/rerun"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// rerunCommand is "rerun" with its flags.
type rerunCommand struct {
	*maker
	job     string
	options rerun.Options
}

func newRerun(t *tool) *cobra.Command {
	r := &rerunCommand{maker: newMaker(t)}
	c := &cobra.Command{
		Use:   "rerun JOB [--failed-indexes] [flags]",
		Short: "Run a Job again that has ended, or its indexes that did not succeed",
		Long: `Run a Job again that has ended: a new Job of the same spec, and with the same values for each index. With --failed-indexes it has
only the indexes that did not succeed; each Pod finds its original index in JOB_COMPLETION_INDEX, and the values that belong to it.

The old Job stays as it is. The new one belongs to no ScheduledJob, even if the old one does.`,
		Example: `  kubectl jobstream rerun render

  # Only what did not succeed; wait for it and see what it prints
  kubectl jobstream rerun render --failed-indexes --logs

  # A Job of Kubernetes' own controller: jobstream runs what is left of it
  kubectl jobstream rerun encode --failed-indexes --managed-by=` + v1alpha1.DefaultManagedBy + `

  # The manifests, to keep or to change
  kubectl jobstream rerun render --failed-indexes --name=render-2 --dry-run=client -o yaml`,
		Args: func(_ *cobra.Command, args []string) error { return r.takeArgs(args) },
		RunE: func(c *cobra.Command, _ []string) error { return r.run(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&r.options.FailedIndexes, "failed-indexes", false, "only the indexes that did not succeed")
	f.StringVar(&r.options.Name, "name", "", "`name` of the new Job (default: JOB-rerun- and five random characters)")
	f.StringVar(&r.options.ManagedBy, "managed-by", "", "`controller` of the new Job (default: that of the old one)")
	r.addFlags(c)
	return c
}

func (r *rerunCommand) takeArgs(args []string) error {
	if len(args) != 1 {
		return usage{errors.New("write the name of one Job, as in: rerun JOB")}
	}
	names, err := kindsAndNames(args, jobKind)
	if err != nil {
		return usage{err}
	}
	r.job = names[0].name
	if r.options.Name != "" {
		if err := run.CheckName(r.options.Name, nil); err != nil {
			return usage{fmt.Errorf("--name: %w", err)}
		}
	}
	return r.check()
}

func (r *rerunCommand) run(ctx context.Context) error {
	c, err := r.connect()
	if err != nil {
		return err
	}
	old, err := r.endedJob(ctx, c)
	if err != nil {
		return err
	}
	parameters, err := r.parameters(ctx, c, old)
	if err != nil {
		return err
	}
	r.options.Suffix = r.suffix()
	objects, err := rerun.Build(old, parameters, r.options)
	if err != nil {
		return err
	}
	if r.tell(objects); r.dryRun == "client" {
		return r.show(objects.Manifests())
	}
	return r.make(ctx, c, objects)
}

// endedJob reads the Job, and returns an error if it has not ended.
func (r *rerunCommand) endedJob(ctx context.Context, c *client) (*batchv1.Job, error) {
	j, err := c.BatchV1().Jobs(c.namespace).Get(ctx, r.job, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w. A deleted Job cannot be run again", noJob(r.job, c.namespace))
	case err != nil:
		return nil, c.answered("cannot read the Job "+r.job, err)
	case ended(j) == nil:
		return nil, fmt.Errorf("the Job %s has not ended: wait for it with: kubectl jobstream wait %s -n %s, or end it with: kubectl jobstream stop %s -n %s", j.Name, j.Name, c.namespace, j.Name, c.namespace)
	}
	return j, nil
}

// parameters reads the ConfigMap with the values of each index; nil if the Job has none.
func (r *rerunCommand) parameters(ctx context.Context, c *client, old *batchv1.Job) (*corev1.ConfigMap, error) {
	name := rerun.NeedsParameters(old)
	if name == "" {
		return nil, nil
	}
	p, err := c.CoreV1().ConfigMaps(c.namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the ConfigMap %s, which has the values of the Job %s, was deleted: create it again, or repeat the run command with its values", name, old.Name)
	case err != nil:
		return nil, c.answered("cannot read the ConfigMap "+name+", which has the values of the Job "+old.Name, err)
	}
	return p, nil
}
