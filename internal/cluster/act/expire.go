package act

import (
	"context"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// deleteJob deletes the Job, and after it its Pods, as Kubernetes' own controller does when the time to live is over
// (ttlafterfinished). The version as a precondition ensures that no user has changed the time to live meanwhile. The Job at that
// version, usually the answer to the reconciler's last write of its status, shows that it is claimed and that its time is over.
func (a *Actor) deleteJob(ctx context.Context, key events.Key, e effect.DeleteJob) ([]events.Event, error) {
	j := a.jobs.at(cluster.IdentityOfKey(key), e.Version)
	if j == nil {
		live, err := a.getJob(ctx, key, e.Job)
		if err != nil || live == nil || events.Version(live.ResourceVersion) != e.Version {
			return a.jobMoved(key, e, e.Job, live, err)
		}
		j = live
	}
	if !expiredBy(events.ProjectJob(j, a.claim).Expires(), a.now()) || !a.claim.Matches(j) {
		return a.sawJob(j), nil
	}
	version := strconv.FormatUint(e.Version, 10)
	deleted := &batchv1.Job{}
	err := a.call(ctx, key.Namespace, a.batch.Delete().Namespace(key.Namespace).Resource("jobs").Name(e.Job).Body(&metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground),
		Preconditions:     &metav1.Preconditions{UID: &key.UID, ResourceVersion: &version},
	}), deleted)
	switch {
	case err == nil && deleted.UID == key.UID:
		a.jobs.saw(deleted)
		return a.sawJob(deleted), nil
	case err == nil, jobPreconditionFailed(err): // an answer without the Job means that it is gone
		live, err := a.getJob(ctx, key, e.Job)
		return a.jobMoved(key, e, e.Job, live, err)
	}
	return a.refused(e, events.NoSerial, err)
}

// expiredBy reports whether the time has come; 0 never comes.
func expiredBy(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }
