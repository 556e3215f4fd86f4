package act

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// writeScheduleStatus writes the status onto the ScheduledJob at the effect's version only: if the ScheduledJob has changed
// since, the answer has its current state, and nothing is overwritten.
func (a *Actor) writeScheduleStatus(ctx context.Context, key events.Key, e effect.WriteScheduleStatus) ([]events.Event, error) {
	j := a.scheduled.at(cluster.IdentityOfKey(key), e.Version)
	if j == nil {
		live, err := a.getScheduledJob(ctx, key, e.ScheduledJob)
		if err != nil || live == nil || events.Version(live.ResourceVersion) != e.Version {
			return a.scheduledJobMoved(key, e, e.ScheduledJob, live, err)
		}
		j = live
	}
	next, written := *j, &cluster.ScheduledJob{} // shares all but the status with the original, which belongs to the cache
	next.Status = e.Status
	err := a.call(ctx, key.Namespace, a.schedules.RESTClient().Put().Namespace(key.Namespace).Resource(v1alpha1.ScheduledJobResource).Name(j.Name).
		SubResource("status").Body(&next), written)
	switch {
	case jobPreconditionFailed(err):
		live, err := a.getScheduledJob(ctx, key, e.ScheduledJob)
		return a.scheduledJobMoved(key, e, e.ScheduledJob, live, err)
	case err != nil:
		return a.statusRefused(key, e, e.ScheduledJob, err)
	}
	a.scheduled.saw(written)
	a.meter.ScheduleStatusWritten(&j.ScheduledJob, &written.ScheduledJob, e.Unannounced)
	for _, r := range e.Reports {
		a.report(key, e.ScheduledJob, r)
	}
	for _, v := range e.Unannounced {
		a.log.Warn("a verdict will never be announced, because the events stream takes none and the status is full", "key", key.String(), "verdict", v.String())
	}
	return sawScheduledJob(written), nil
}

// deleteScheduledJob deletes the ScheduledJob after its Jobs. The version as a precondition ensures that no user has changed the
// time to live meanwhile; the ScheduledJob at that version shows that it is over.
func (a *Actor) deleteScheduledJob(ctx context.Context, key events.Key, e effect.DeleteScheduledJob) ([]events.Event, error) {
	j := a.scheduled.at(cluster.IdentityOfKey(key), e.Version)
	if j == nil {
		live, err := a.getScheduledJob(ctx, key, e.ScheduledJob)
		if err != nil || live == nil || events.Version(live.ResourceVersion) != e.Version {
			return a.scheduledJobMoved(key, e, e.ScheduledJob, live, err)
		}
		j = live
	}
	if !expiredBy(j.Project().Expires(), a.now()) {
		return sawScheduledJob(j), nil
	}
	version := strconv.FormatUint(e.Version, 10)
	deleted := &cluster.ScheduledJob{}
	err := a.call(ctx, key.Namespace, a.schedules.RESTClient().Delete().Namespace(key.Namespace).Resource(v1alpha1.ScheduledJobResource).Name(e.ScheduledJob).
		Body(&metav1.DeleteOptions{
			PropagationPolicy: new(metav1.DeletePropagationForeground),
			Preconditions:     &metav1.Preconditions{UID: &key.UID, ResourceVersion: &version},
		}), deleted)
	switch {
	case err == nil && deleted.UID == key.UID:
		a.scheduled.saw(deleted)
		return sawScheduledJob(deleted), nil
	case err == nil, jobPreconditionFailed(err): // an answer without it means that it is gone
		live, err := a.getScheduledJob(ctx, key, e.ScheduledJob)
		return a.scheduledJobMoved(key, e, e.ScheduledJob, live, err)
	}
	return a.refused(e, events.NoSerial, err)
}

// scheduledJobMoved answers with the current ScheduledJob, if it is not as the effect knew it.
func (a *Actor) scheduledJobMoved(key events.Key, e effect.Effect, name string, live *cluster.ScheduledJob, err error) ([]events.Event, error) {
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case live == nil:
		a.scheduled.forget(cluster.IdentityOfKey(key))
		return missedScheduledJob(name), nil
	}
	a.scheduled.saw(live)
	return sawScheduledJob(live), nil
}

// getScheduledJob reads the current ScheduledJob of the key. nil means that it does not exist, or that the name belongs to
// another one.
func (a *Actor) getScheduledJob(ctx context.Context, key events.Key, name string) (*cluster.ScheduledJob, error) {
	get := a.schedules.RESTClient().Get().Namespace(key.Namespace).Resource(v1alpha1.ScheduledJobResource).Name(name)
	j := &cluster.ScheduledJob{}
	err := a.callAhead(ctx, key.Namespace, get, j) // for a creation that is due, or a write that is half done
	switch {
	case apierrors.IsNotFound(err), err == nil && j.UID != key.UID:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return j, nil
}

func sawScheduledJob(j *cluster.ScheduledJob) []events.Event {
	return []events.Event{events.ScheduledJobObserved{ScheduledJob: j.Project()}}
}

func missedScheduledJob(name string) []events.Event {
	return []events.Event{events.ScheduledJobGone{Name: name}}
}
