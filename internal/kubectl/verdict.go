package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/run"
	"github.com/jobstream/jobstream/internal/progress"
	"github.com/jobstream/jobstream/internal/zone"
)

// after runs once all is created: it warns the user if jobstream does not process the object, and waits for the end if a flag
// asks for it.
func (m *maker) after(ctx context.Context, c *client, created run.Object) error {
	waits := m.wait || m.logs
	if m.timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, m.timeout, exit{fmt.Errorf("the Job %s has not ended within %v; it goes on", created.GetName(), m.timeout), ExitTimeout})
		defer cancel()
	}
	kind, _ := kindOf(created)
	taken, err := c.awaitTakenUp(ctx, created, m.takeUpTimeout)
	switch {
	case err != nil && waits:
		return gaveUp(ctx, err, created.GetName())
	case err != nil: // a user who may create objects may not be allowed to read them
		return nil
	case taken == nil:
		fmt.Fprintf(m.ErrOut, "warning: jobstream has not processed the %s %s within %v: it waits until jobstream's trigger and reconciler run in this cluster. To look for them: kubectl get deployments -A -l app.kubernetes.io/part-of=jobstream\n",
			kind, created.GetName(), m.takeUpTimeout)
	}
	if s, is := taken.(*v1alpha1.ScheduledJob); is {
		m.tellNext(s)
	}
	if j, is := created.(*batchv1.Job); is && waits {
		return m.awaitEnd(ctx, c, j)
	}
	return nil
}

// tellNext prints when a ScheduledJob will create its next Job, or why it will not.
func (m *maker) tellNext(s *v1alpha1.ScheduledJob) {
	for _, condition := range s.Status.Conditions {
		if condition.Type == v1alpha1.StalledCondition && condition.Status == "True" {
			fmt.Fprintf(m.ErrOut, "warning: the ScheduledJob %s makes no Jobs: %s\n", s.Name, progress.Why(condition.Reason, condition.Message))
			return
		}
	}
	if next := s.Status.NextScheduleTime; next != nil && next.After(time.Now()) {
		at := next.UTC()
		if loc, err := zone.Load(ptr.Deref(s.Spec.TimeZone, "")); err == nil {
			at = next.In(loc)
		}
		fmt.Fprintf(m.ErrOut, "the next Job starts at %s\n", at.Format(time.RFC3339))
	}
}

// awaitEnd shows the Job until it has ended, and returns the verdict: nil if it is Complete.
func (m *maker) awaitEnd(ctx context.Context, c *client, j *batchv1.Job) error {
	last, err := m.follow(ctx, c, j)
	if err != nil {
		return gaveUp(ctx, err, j.Name)
	}
	end := ended(last)
	if end.Type == batchv1.JobFailed {
		return exit{fmt.Errorf("the Job %s has failed: %s (%s)", j.Name, progress.Why(end.Reason, end.Message), tally(last)), ExitFailed}
	}
	fmt.Fprintf(m.ErrOut, "the Job %s is complete: %s\n", j.Name, tally(last))
	return nil
}

// follow shows the Job, and prints its logs if a flag asks for them, until it has ended.
func (m *maker) follow(ctx context.Context, c *client, j *batchv1.Job) (*batchv1.Job, error) {
	v := newView(m.ErrOut, !m.logs)
	defer v.Close()
	if !m.logs {
		defer v.followPods(ctx, c, podsOf(j))()
		return c.awaitEnd(ctx, j.Name, j.UID, v)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	finish := newPodLogs(c, j, m.Out, v).begin(ctx, j)
	last, err := c.awaitEnd(ctx, j.Name, j.UID, v)
	if err != nil {
		stop() // the rest of the logs is not needed
	}
	finish()
	return last, err
}

// gaveUp explains why the wait for the Job's end was abandoned.
func gaveUp(ctx context.Context, err error, name string) error {
	if errors.Is(ctx.Err(), context.Canceled) { // canceled, not expired
		return exit{fmt.Errorf("interrupted: the Job %s goes on; kubectl delete job %s stops it", name, name), ExitInterrupted}
	}
	return err
}

// mostOfIndexes is the most that is printed of a list of indexes, in bytes.
const mostOfIndexes = 1024

// tally sums up a Job's Pods in a few words.
func tally(j *batchv1.Job) string {
	s := fmt.Sprintf("%d succeeded, %d failed", j.Status.Succeeded, j.Status.Failed)
	if failed := j.Status.FailedIndexes; failed != nil && *failed != "" {
		s += ", failed indexes " + progress.Clean(*failed, mostOfIndexes)
	}
	if end := ended(j); j.Status.StartTime != nil && end != nil {
		s += fmt.Sprintf(", in %v", end.LastTransitionTime.Sub(j.Status.StartTime.Time).Round(time.Second))
	}
	return s
}
