package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// triggerCommand is "trigger" with its flags.
type triggerCommand struct {
	*maker
	schedule string
	env      []string
	force    bool
}

func newTrigger(t *tool) *cobra.Command {
	r := &triggerCommand{maker: newMaker(t)}
	c := &cobra.Command{
		Use:   "trigger SCHEDULEDJOB [flags]",
		Short: "Run a ScheduledJob now, beside its schedule",
		Long: `Run a ScheduledJob now, beside its schedule: a Job from its template, which it owns, lists and counts. What the schedule
decides about its nominal times stays as it is. A suspended ScheduledJob can be run, too.

Unless concurrencyPolicy is Allow, nothing is started while another of its Jobs runs.`,
		Example: `  kubectl jobstream trigger nightly

  # With another variable; wait for it and see what it prints
  kubectl jobstream trigger nightly --env=DAY=2026-11-01 --logs

  # The manifest, to keep or to change
  kubectl jobstream trigger nightly --dry-run=client -o yaml`,
		Args: func(_ *cobra.Command, args []string) (err error) {
			if r.schedule, err = oneScheduledJob("trigger", args); err != nil {
				return usage{err}
			}
			if err := run.CheckEnv(r.env); err != nil {
				return usage{err}
			}
			return r.check()
		},
		RunE: func(c *cobra.Command, _ []string) error { return r.run(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringArrayVar(&r.env, "env", nil, "`NAME=VALUE`: a variable for all containers, in place of the template's; may be repeated")
	f.BoolVar(&r.force, "force", false, "start the Job whatever concurrencyPolicy says")
	r.addFlags(c)
	return c
}

// oneScheduledJob returns the only argument, the name of a ScheduledJob.
func oneScheduledJob(command string, args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("write the name of one ScheduledJob, as in: %s nightly", command)
	}
	names, err := kindsAndNames(args, v1alpha1.ScheduledJobKind)
	if err != nil {
		return "", err
	}
	return names[0].name, nil
}

func (r *triggerCommand) run(ctx context.Context) error {
	c, err := r.connect()
	if err != nil {
		return err
	}
	sj, err := c.scheduledJob(ctx, r.schedule)
	if err != nil {
		return err
	}
	if policy := sj.Spec.ConcurrencyPolicy; !r.force && policy.OneAtATime() {
		if name, err := c.activeRun(ctx, sj); err != nil {
			return err
		} else if name != "" {
			return fmt.Errorf("not started, because the Job %s still runs and concurrencyPolicy of the ScheduledJob %s is %s: wait for it with: kubectl jobstream wait %s -n %s, or start another one beside it with --force",
				name, sj.Name, policy, name, c.namespace)
		}
	}
	j := scheduledjob.BuildManual(sj, r.suffix(), time.Now(), v1alpha1.DefaultManagedBy)
	run.SetEnv(&j.Spec.Template.Spec, r.env)
	objects := run.Objects{Owner: ofRun(j)}
	if r.dryRun == "client" {
		return r.show(objects.Manifests())
	}
	return r.make(ctx, c, objects)
}

// ofRun sets the Job's kind, and removes the blocking flag of its owner reference, which not every user may write.
func ofRun(j *batchv1.Job) *batchv1.Job {
	j.SetGroupVersionKind(schema.GroupVersionKind{Group: batchv1.GroupName, Version: "v1", Kind: jobKind})
	for i := range j.OwnerReferences {
		j.OwnerReferences[i].BlockOwnerDeletion = nil
	}
	return j
}

// scheduledJob reads a ScheduledJob whose Jobs are to be created, and refuses one that is being deleted.
func (c *client) scheduledJob(ctx context.Context, name string) (*v1alpha1.ScheduledJob, error) {
	sj, err := c.scheduled.get(ctx, c.namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no ScheduledJob %s in the namespace %s: kubectl get scheduledjobs -n %s lists those that there are", name, c.namespace, c.namespace)
	case err != nil:
		return nil, c.answered("cannot read the ScheduledJob "+name, err)
	case sj.DeletionTimestamp != nil:
		return nil, errors.New("the ScheduledJob " + name + " is being deleted, and its Jobs go with it")
	}
	return sj, nil
}

// ofScheduledJob returns the selector of a ScheduledJob's Jobs.
func ofScheduledJob(sj *v1alpha1.ScheduledJob) string {
	return labels.Set{v1alpha1.ScheduledJobUIDLabel: string(sj.UID)}.String()
}

// activeRun returns the name of a Job of the ScheduledJob that has not ended, or "". A Job without the label appears in the
// status only.
func (c *client) activeRun(ctx context.Context, sj *v1alpha1.ScheduledJob) (string, error) {
	list, err := c.BatchV1().Jobs(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: ofScheduledJob(sj)})
	if err != nil {
		return "", fmt.Errorf("%w; --force does not look", c.answered("cannot see whether a Job of the ScheduledJob "+sj.Name+" runs", err))
	}
	seen := map[types.UID]bool{}
	for i := range list.Items {
		j := &list.Items[i]
		if seen[j.UID] = true; metav1.IsControlledBy(j, sj) && ended(j) == nil {
			return j.Name, nil
		}
	}
	for _, ref := range sj.Status.Active {
		if seen[ref.UID] {
			continue
		}
		j, err := c.BatchV1().Jobs(c.namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", c.answered("cannot read the Job "+ref.Name, err)
		case j.UID == ref.UID && ended(j) == nil:
			return j.Name, nil
		}
	}
	return "", nil
}
