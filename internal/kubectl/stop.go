package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/progress"
)

// stopCommand is "stop" with its flags.
type stopCommand struct {
	*selection
	wait    bool
	timeout time.Duration
}

func newStop(t *tool) *cobra.Command {
	s := &stopCommand{selection: newSelection(t, jobKind)}
	command := &cobra.Command{
		Use:   "stop {JOB... | -l SELECTOR [-A]}",
		Short: "End Jobs for good, and keep them with their counts",
		Long: `End Jobs for good, and keep them with their counts. The Pods of a Job are deleted, and it is Failed with the reason
ManuallyTerminated; it cannot be resumed. Use "suspend" for a Job that is to go on later; "kubectl delete job" also deletes its counts.

It needs patch on jobs/status. A Job of the built-in controller ends in the same way if you name it; -l selects only jobstream's Jobs.`,
		Example: `  kubectl jobstream stop render
  kubectl jobstream stop render encode --wait

  # Whatever of an application runs
  kubectl jobstream stop -l app=shop --dry-run=server`,
		RunE: func(command *cobra.Command, args []string) error { return s.run(command.Context(), args) },
	}
	s.flags(command)
	f := command.Flags()
	f.BoolVar(&s.wait, "wait", false, "wait until the Pods are gone and the Jobs are Failed")
	f.DurationVar(&s.timeout, "timeout", 0, "`time` after which --wait ends with exit code 124, such as 5m (default: never)")
	return command
}

func (s *stopCommand) check(args []string) error {
	switch {
	case len(args) == 0 && s.selector == "" && !s.all:
		return errors.New("nothing is named: write NAME, or -l SELECTOR, as in: stop -l app=shop")
	case s.all && s.selector == "":
		return errors.New("-A would end all Jobs of the cluster for good: add -l SELECTOR; \"suspend jobs -A\" stops all, and \"resume\" lets them go on")
	case s.timeout != 0 && !s.wait:
		return errors.New("--timeout is how long to wait: add --wait")
	case s.timeout < 0:
		return fmt.Errorf("--timeout=%v is in the past: write a time such as 5m", s.timeout)
	case s.wait && s.dryRun != "none":
		return fmt.Errorf("--dry-run=%s ends no Job: leave out --wait", s.dryRun)
	}
	return nil
}

func (s *stopCommand) run(ctx context.Context, args []string) error {
	if err := s.check(args); err != nil {
		return usage{err}
	}
	c, found, err := s.find(ctx, args)
	if err != nil {
		return err
	}
	var going []target // the Jobs that have not ended
	err = s.each(ctx, found, func(o target) error {
		goes, err := s.one(ctx, c, o)
		if goes {
			going = append(going, o)
		}
		return err
	})
	if !s.wait {
		return err
	}
	return errors.Join(err, s.await(ctx, c, going))
}

// one stops one Job, unless it has ended. goes reports whether the Job is about to end.
func (s *stopCommand) one(ctx context.Context, c *client, o target) (goes bool, err error) {
	switch {
	case o.finished:
		fmt.Fprintf(s.ErrOut, "%s has finished: nothing is left to stop\n", o)
		return false, nil
	case is(o.job, batchv1.JobSuccessCriteriaMet):
		fmt.Fprintf(s.ErrOut, "%s has all the successes that it needs, and is about to be complete\n", o)
		return true, s.unchanged(o)
	case is(o.job, batchv1.JobFailureTarget):
		fmt.Fprintf(s.ErrOut, "%s is about to be Failed already\n", o)
		return true, s.unchanged(o)
	}
	patch, err := terminate(o.uid, time.Now())
	if err != nil {
		return false, err
	}
	options, mode := s.patchOptions()
	stopped, err := c.BatchV1().Jobs(o.namespace).Patch(ctx, o.name, types.StrategicMergePatchType, patch, options, "status")
	switch {
	case s.gone(err):
		fmt.Fprintf(s.ErrOut, "%s has been deleted meanwhile: nothing is left to stop\n", o)
		return false, nil
	case replaced(err):
		return false, fmt.Errorf("cannot stop %s: it has been deleted or created again meanwhile: look at it, and repeat the command", o)
	case apierrors.IsInvalid(err):
		return false, fmt.Errorf("cannot stop %s, which may have ended meanwhile: look at it with: kubectl get job %s -n %s: %w", o, o.name, o.namespace, err)
	case apierrors.IsForbidden(err):
		return false, fmt.Errorf("cannot stop %s: %w: that takes patch on jobs/status. Without it, \"kubectl jobstream suspend job/%s -n %s\" deletes its Pods and keeps its counts, and \"kubectl delete job %s -n %s\" ends it for good",
			o, err, o.name, o.namespace, o.name, o.namespace)
	case err != nil:
		return false, c.answered(fmt.Sprintf("cannot stop %s", o), err)
	}
	s.report(targetJob(stopped), "%s stopped%s", o, mode)
	return true, nil
}

// terminate returns the patch of the status that ends the Job with that UID. Every Job controller treats the condition as its own
// verdict (Kubernetes 1.36, syncJob): it deletes the Pods, counts them, and sets Failed with the same reason.
func terminate(uid types.UID, now time.Time) ([]byte, error) {
	at := metav1.NewTime(now)
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid},
		"status": map[string]any{"conditions": []batchv1.JobCondition{{
			Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonManuallyTerminated,
			Message: "Job was stopped by a user", LastProbeTime: at, LastTransitionTime: at,
		}}},
	})
}

// await waits until all have ended or are deleted.
func (s *stopCommand) await(ctx context.Context, c *client, going []target) error {
	if s.timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, s.timeout, errLate)
		defer cancel()
	}
	for i, o := range going {
		lost := func(err error) {
			fmt.Fprintf(s.ErrOut, "warning: %v; trying again\n", c.unreachable("cannot see the Job", err))
		}
		last, err := one(ctx, c.jobsIn(o.namespace), jobKind, o.name, o.uid, lost, func(j *batchv1.Job) bool { return ended(j) != nil })
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return exit{errors.New("interrupted: the Jobs are stopped all the same"), ExitInterrupted}
		case errors.Is(err, errLate):
			return exit{fmt.Errorf("%d of %d Jobs have not ended within %v: see what their Pods wait for with: kubectl get pods -n %s -l %s=%s", len(going)-i, len(going), s.timeout, o.namespace, batchv1.JobNameLabel, o.name), ExitTimeout}
		case last == nil || ended(last) == nil:
			if err != nil && hopeless(err) {
				return c.unreachable("cannot see the Job "+o.name, err)
			}
			fmt.Fprintf(s.ErrOut, "%v\n", err) // it was deleted
			continue
		}
		end := ended(last)
		fmt.Fprintf(s.ErrOut, "%s is %s: %s (%s)\n", o, end.Type, progress.Why(end.Reason, end.Message), tally(last))
	}
	return nil
}

// is reports whether the condition of the Job is True.
func is(j *batchv1.Job, t batchv1.JobConditionType) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
