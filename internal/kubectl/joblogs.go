package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/functions/intervals"
)

// logsCommand is "logs" with its flags.
type logsCommand struct {
	*tool
	name     string
	index    string
	indexes  intervals.Set
	failed   bool
	previous bool
	follow   bool
}

func newLogs(t *tool) *cobra.Command {
	l := &logsCommand{tool: t}
	c := &cobra.Command{
		Use:   "logs JOB [flags]",
		Short: "Print what the Pods of a Job print",
		Long: `Print what the Pods of a Job print, one Pod after the other, in the order of their indexes. Where there are several Pods,
each line begins with the index of its Pod, or with its name where it has none.`,
		Example: `  kubectl jobstream logs render

  # As it comes, until the Job has ended
  kubectl jobstream logs render -f

  # Some indexes; the Pods that failed; the container before the one that was started again
  kubectl jobstream logs render --index=3,7-9
  kubectl jobstream logs render --failed
  kubectl jobstream logs render --index=3 --previous`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage{errors.New("write the name of one Job, as in: logs JOB")}
			}
			l.name = jobNames(args)[0]
			return l.check()
		},
		RunE: func(c *cobra.Command, _ []string) error { return l.run(c.Context()) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&l.index, "index", "", "`indexes` of the Pods, such as 3 or 0-4,7")
	f.BoolVar(&l.failed, "failed", false, "only Pods that have failed, and Pods whose container has failed and was restarted")
	f.BoolVarP(&l.previous, "previous", "p", false, "print the output of the container before its last restart")
	f.BoolVarP(&l.follow, "follow", "f", false, "print new output until the Job has ended")
	return c
}

func (l *logsCommand) check() error {
	if l.previous && l.follow {
		return usage{errors.New("--previous is about containers that have ended: leave out --follow")}
	}
	var err error
	if l.indexes, err = intervals.Parse(l.index); err != nil {
		return usage{fmt.Errorf("--index=%s: write numbers in order, such as 3 or 0-4,7", l.index)}
	}
	return nil
}

func (l *logsCommand) run(ctx context.Context) error {
	c, err := l.connect()
	if err != nil {
		return err
	}
	j, err := c.BatchV1().Jobs(c.namespace).Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return noJob(l.name, c.namespace)
	case err != nil:
		return c.unreachable("cannot see the Job "+l.name, err)
	case l.index != "" && !isIndexed(j):
		return fmt.Errorf("--index=%s: the Job %s is not Indexed, so its Pods have none: leave it out", l.index, l.name)
	}
	v := newView(l.ErrOut, false)
	defer v.Close()
	logs := newPodLogs(c, j, l.Out, v)
	logs.want = l.wants
	if l.follow {
		return l.untilEnd(ctx, c, logs, j)
	}
	return l.asItIs(ctx, c, logs, j)
}

// wants reports whether the command prints the logs of a Pod.
func (l *logsCommand) wants(p *corev1.Pod) bool {
	if l.index != "" {
		if !l.indexes.Has(indexOf(p)) {
			return false
		}
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	s := &p.Status.ContainerStatuses[0]
	if l.previous && s.LastTerminationState.Terminated == nil {
		return false
	}
	return !l.failed || p.Status.Phase == corev1.PodFailed || s.RestartCount > 0 || s.State.Terminated != nil && s.State.Terminated.ExitCode != 0
}

// asItIs prints the existing output.
func (l *logsCommand) asItIs(ctx context.Context, c *client, logs *podLogs, j *batchv1.Job) error {
	pods, _, err := c.pods().list(ctx, podsOf(j))
	if err != nil {
		return fmt.Errorf("cannot see the Pods of the Job %s: %w", j.Name, err)
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		_, started := attemptOf(p)
		return !started || !l.wants(p)
	})
	switch len(pods) {
	case 0:
		return fmt.Errorf("no Pod of the Job %s has such logs: kubectl get pods -n %s -l %s=%s shows its Pods", j.Name, c.namespace, batchv1.JobNameLabel, j.Name)
	case 1:
		logs.prefix = func(*corev1.Pod) string { return "" }
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(indexOf(a), indexOf(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	failed := 0
	for _, p := range pods {
		if err := logs.copy(ctx, p, &corev1.PodLogOptions{Previous: l.previous}); err != nil {
			if ctx.Err() != nil {
				return exit{errors.New("interrupted"), ExitInterrupted}
			}
			failed++
			logs.complain("the logs of the Pod %s: %v", p.Name, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("the logs of %d of %d Pods could not be read", failed, len(pods))
	}
	return nil
}

// untilEnd prints output until the Job has ended.
func (l *logsCommand) untilEnd(ctx context.Context, c *client, logs *podLogs, j *batchv1.Job) error {
	finish := logs.begin(ctx, j)
	_, err := one(ctx, c.jobs(), "Job", j.Name, j.UID, func(err error) {
		logs.complain("%v; trying again", c.unreachable("cannot see the Job", err))
	}, func(j *batchv1.Job) bool { return ended(j) != nil })
	finish() // a deleted Job may have printed something, too
	if errors.Is(ctx.Err(), context.Canceled) {
		return exit{fmt.Errorf("interrupted: the Job %s goes on", j.Name), ExitInterrupted}
	}
	return err
}

// indexOf returns the Pod's index, or -1.
func indexOf(p *corev1.Pod) int {
	if index, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation]); err == nil {
		return index
	}
	return -1
}

func isIndexed(j *batchv1.Job) bool {
	return j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion
}
