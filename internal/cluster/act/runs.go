package act

import (
	"context"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/scheduledjob"
	"github.com/jobstream/jobstream/internal/cluster"
)

// createJob creates the Job of one nominal time from the template of the ScheduledJob, which it looks at first: a ScheduledJob
// that is suspended or being deleted wants no more Jobs, and the Job of a deleted one would be collected as garbage.
func (a *Actor) createJob(ctx context.Context, key events.Key, e effect.CreateJob) ([]events.Event, error) {
	// A cached one that is suspended may have been resumed since.
	good := func(j *cluster.ScheduledJob) bool { return j.Generation >= e.Generation && !paused(j) }
	j, err := a.scheduled.load(ctx, cluster.IdentityOfKey(key), good, func(ctx context.Context) (*cluster.ScheduledJob, error) {
		return a.getScheduledJob(ctx, key, e.ScheduledJob) // as etcd has it: a user may have suspended it a moment ago
	})
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case j == nil:
		return missedScheduledJob(e.ScheduledJob), nil
	case paused(j), j.DeletionTimestamp != nil:
		return sawScheduledJob(j), nil
	}
	created := &batchv1.Job{}
	err = a.callAhead(ctx, key.Namespace, a.batch.Post().Namespace(key.Namespace).Resource("jobs").
		Body(scheduledjob.BuildJob(&j.ScheduledJob, e.Nominal, a.claim.ManagedBy, a.zone(j))), created)
	switch {
	case err == nil:
		a.meter.JobCreated(key.Namespace, e.Nominal, a.now())
		return a.sawRun(key, created), nil
	case apierrors.IsAlreadyExists(err):
		return a.meetJob(ctx, key, e, err)
	}
	return a.refused(e, events.NoSerial, err)
}

func paused(j *cluster.ScheduledJob) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// zone loads the time zone of the schedule. A schedule with an unknown zone creates no Jobs, except for a moment after the zone
// was changed.
func (a *Actor) zone(j *cluster.ScheduledJob) *time.Location {
	if j.Spec.TimeZone != nil {
		if zone, err := a.zones(*j.Spec.TimeZone); err == nil {
			return zone
		}
	}
	return time.UTC
}

// meetJob finds out who created the Job that has the name already. If this ScheduledJob did, the effect succeeded earlier without
// an answer. A foreign one is most often a leftover of a deleted ScheduledJob of the same name: the proposal wants it to block,
// visibly, until a user deletes it. A Job that has disappeared since is a plain refusal, and the creation is tried again.
func (a *Actor) meetJob(ctx context.Context, key events.Key, e effect.CreateJob, taken error) ([]events.Event, error) {
	j, err := a.readJob(ctx, key.Namespace, e.Name, newest)
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case j == nil:
		return a.refused(e, events.NoSerial, taken)
	case isRun(j, key):
		return a.sawRun(key, j), nil
	}
	by := "no object controls"
	if ref := metav1.GetControllerOf(j); ref != nil {
		by = fmt.Sprintf("the %s %s (UID %s) controls", ref.Kind, ref.Name, ref.UID)
	}
	return a.refused(e, events.NoSerial, userError{string(metav1.StatusReasonAlreadyExists),
		fmt.Sprintf("the name of the Job %s is taken by a Job that %s: delete it, and this one is made", e.Name, by)})
}

// findRun looks whether the Job was created. A foreign Job of the same name does not count.
func (a *Actor) findRun(ctx context.Context, key events.Key, e effect.FindRun) ([]events.Event, error) {
	j, err := a.readJob(ctx, key.Namespace, e.Name, newest)
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case j != nil && isRun(j, key):
		return a.sawRun(key, j), nil
	}
	return []events.Event{events.RunMissing{Name: e.Name, ID: e.ID}}, nil
}

// deleteRun deletes a Job of the ScheduledJob, which must control it. An answer without the Job means that it is gone; if the Job
// is not at the observed version, the answer shows its current state.
func (a *Actor) deleteRun(ctx context.Context, key events.Key, e effect.DeleteRun) ([]events.Event, error) {
	if !a.owned.run(e.UID, cluster.IdentityOfKey(key)) {
		j, err := a.readJob(ctx, key.Namespace, e.Name, newest)
		switch {
		case err != nil:
			return a.refused(e, events.NoSerial, err)
		case j == nil || j.UID != e.UID || !isRun(j, key):
			return missedRun(e.Name, e.UID), nil
		}
	}
	propagation := metav1.DeletePropagationBackground
	if e.Foreground {
		propagation = metav1.DeletePropagationForeground
	}
	deleted := &batchv1.Job{}
	err := a.call(ctx, key.Namespace, a.batch.Delete().Namespace(key.Namespace).Resource("jobs").Name(e.Name).Body(&metav1.DeleteOptions{
		PropagationPolicy: &propagation, Preconditions: preconditions(e),
	}), deleted)
	switch {
	case jobPreconditionFailed(err):
		return a.lookAtRun(ctx, key, e)
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	}
	a.report(key, a.scheduled.name(cluster.IdentityOfKey(key)), effect.Report{Reason: "SuccessfulDelete", Message: "Deleted job " + e.Name})
	if deleted.UID != e.UID {
		return missedRun(e.Name, e.UID), nil
	}
	return a.sawRun(key, deleted), nil
}

func preconditions(e effect.DeleteRun) *metav1.Preconditions {
	p := &metav1.Preconditions{UID: &e.UID}
	if e.Version != 0 {
		p.ResourceVersion = new(strconv.FormatUint(e.Version, 10))
	}
	return p
}

// lookAtRun returns the current state of a Job that was to be deleted.
func (a *Actor) lookAtRun(ctx context.Context, key events.Key, e effect.DeleteRun) ([]events.Event, error) {
	j, err := a.readJob(ctx, key.Namespace, e.Name, newest)
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case j == nil || j.UID != e.UID:
		return missedRun(e.Name, e.UID), nil
	}
	return a.sawRun(key, j), nil
}

// isRun reports whether the ScheduledJob of the key owns the Job.
func isRun(j *batchv1.Job, key events.Key) bool {
	owner, _, ok := events.ProjectRun(j)
	return ok && owner == key.UID
}

// sawRun makes a fact of a Job. A Job that was taken away from its ScheduledJob is gone for that.
func (a *Actor) sawRun(key events.Key, j *batchv1.Job) []events.Event {
	if !isRun(j, key) {
		return missedRun(j.Name, j.UID)
	}
	a.owned.sawRun(j)
	_, run, _ := events.ProjectRun(j)
	return []events.Event{events.RunObserved{Run: run}}
}

func missedRun(name string, uid types.UID) []events.Event {
	return []events.Event{events.RunGone{Run: events.Run{Name: name, UID: uid}}}
}
