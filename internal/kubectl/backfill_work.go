package kubectl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/backfill"
)

// follow creates each Job when Work allows it, until all have ended.
func (b *backfillCommand) follow(ctx context.Context, c *client, sj *v1alpha1.ScheduledJob, w *backfill.Work) error {
	var failed error
	killed := false // one of its Jobs was deleted before its end
	say := func(line string) {
		if line != "" {
			fmt.Fprintln(b.Out, line)
		}
	}
	err := c.followJobs(ctx, &someJobs{
		selector: ofScheduledJob(sj),
		saw: func(j *batchv1.Job) {
			if metav1.IsControlledBy(j, sj) || w.Follows(j.UID) { // the label proves nothing: any user may write it
				say(w.Saw(j))
			}
		},
		gone: func(j *batchv1.Job) {
			killed = killed || w.Follows(j.UID) && ended(j) == nil
			say(w.Gone(j))
		},
		enough: func() bool {
			if killed {
				if failed = c.stillThere(ctx, sj); failed != nil {
					return true
				}
				killed = false
			}
			for r, ok := w.Next(); ok && ctx.Err() == nil; r, ok = w.Next() {
				line, err := b.start(ctx, c, sj, w, r)
				if err != nil {
					failed = err
					return true
				}
				say(line)
			}
			b.waits(w)
			return w.Over()
		},
		lost: func(err error) {
			fmt.Fprintf(b.ErrOut, "warning: %v; trying again\n", c.unreachable("cannot see the Jobs", err))
		},
	})
	if failed != nil {
		return failed
	}
	return err
}

// stillThere returns an error if the ScheduledJob has been deleted: the garbage collector would delete every Job made from it.
func (c *client) stillThere(ctx context.Context, sj *v1alpha1.ScheduledJob) error {
	now, err := c.scheduled.get(ctx, c.namespace, sj.Name)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return c.answered("cannot read the ScheduledJob "+sj.Name, err)
	case err != nil, now.UID != sj.UID, now.DeletionTimestamp != nil:
		return errors.New("the ScheduledJob " + sj.Name + " was deleted, and its Jobs go with it")
	}
	return nil
}

// start creates the Job of one nominal time.
func (b *backfillCommand) start(ctx context.Context, c *client, sj *v1alpha1.ScheduledJob, w *backfill.Work, r backfill.Run) (line string, err error) {
	whole, cancel := toTheEnd(ctx)
	defer cancel()
	j := b.job(sj, r)
	created, err := c.createOne(whole, j, metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict})
	switch {
	case apierrors.IsAlreadyExists(err):
		return b.meet(whole, c, sj, w, r)
	case err != nil:
		return "", c.refused(j, err)
	}
	return w.Made(created.(*batchv1.Job)), nil
}

// meet reads a Job that was created after the list: by another backfill, or by an earlier request whose answer was lost. The
// watch may show it late, or not at all if it carries another label.
func (b *backfillCommand) meet(ctx context.Context, c *client, sj *v1alpha1.ScheduledJob, w *backfill.Work, r backfill.Run) (line string, err error) {
	j, err := c.BatchV1().Jobs(c.namespace).Get(ctx, r.Job, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // deleted in between: the next round retries
		return "", nil
	case err != nil:
		return "", c.answered("cannot read the Job "+r.Job+", which exists already", err)
	case !metav1.IsControlledBy(j, sj):
		return "", fmt.Errorf("the name of the Job %s is taken by a Job that the ScheduledJob %s does not control: delete that one first, with: kubectl delete job %s -n %s", r.Job, sj.Name, r.Job, c.namespace)
	}
	return w.Saw(j), nil
}

// waits prints, once, which Jobs the next one waits for.
func (b *backfillCommand) waits(w *backfill.Work) {
	names, why := strings.Join(w.WaitsFor(), ", "), "concurrencyPolicy lets one Job run at once"
	if !w.Alone {
		why = fmt.Sprintf("--parallelism=%d", b.parallelism)
	}
	if names != "" && names != b.waitsFor {
		fmt.Fprintf(b.ErrOut, "waiting for %s, since %s\n", names, why)
	}
	b.waitsFor = names
}
