package act

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/pod"
	"github.com/jobstream/jobstream/internal/cluster"
)

// createPod creates the Pod from the Job's template. It looks at the Job first: a Pod of a deleted Job would be collected as
// garbage, and a Job that is suspended or being deleted wants no more Pods.
func (a *Actor) createPod(ctx context.Context, key events.Key, e effect.CreatePod) ([]events.Event, error) {
	j, err := a.template(ctx, key, e)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case j == nil:
		return missedJob(e.Job), nil
	case suspended(j), j.DeletionTimestamp != nil, !a.claim.Matches(j), !namesParameters(j, e):
		return a.sawJob(j), nil
	}
	if err := wanted(j, e); err != nil {
		return a.refused(e, e.Serial, err)
	}
	parameters, err := a.parametersAt(ctx, key.Namespace, e)
	if err != nil {
		return a.refused(e, e.Serial, err)
	}
	pod := pod.Build(j, e, pod.FirstEnv(j, a.tracePods, parameters))
	created := &corev1.Pod{}
	err = a.call(ctx, key.Namespace, a.core.Post().Namespace(key.Namespace).Resource("pods").Body(pod), created)
	a.meter.PodCreation(j, err)
	switch {
	case err == nil:
		a.owned.saw(created)
		a.report(key, e.Job, effect.Report{Reason: "SuccessfulCreate", Message: "Created pod: " + created.Name})
		return sawPod(created), nil
	case apierrors.IsAlreadyExists(err):
		return a.meetPod(ctx, key, e, err)
	}
	return a.refused(e, e.Serial, err)
}

// wanted returns what is wrong with a Pod that this Job can never want: a name that does not match its serial, an index where it
// has none. No function decides on such a Pod, but a state that another client has written may hold one. wanted does not check
// the number of indexes: a Job may be scaled down while the Pod of an index waits to be created, and then it is created and
// deleted.
func wanted(j *batchv1.Job, e effect.CreatePod) error {
	switch {
	case e.Name != pod.Name(j.Name, j.UID, e.Serial, e.Index):
		return userError{"Invalid", fmt.Sprintf("the Pod with the serial %d of this Job has another name", e.Serial)}
	case !hasIndex(j, e):
		return userError{"Invalid", fmt.Sprintf("the Job has no Pod with index %d", e.Index)}
	}
	return nil
}

func hasIndex(j *batchv1.Job, e effect.CreatePod) bool {
	if j.Spec.CompletionMode == nil || *j.Spec.CompletionMode != batchv1.IndexedCompletion {
		return e.Index == events.NoIndex
	}
	return e.Index >= 0
}

func namesParameters(j *batchv1.Job, e effect.CreatePod) bool {
	return e.Parameters == "" || e.Parameters == j.Annotations[v1alpha1.PerCompletionEnvAnnotation]
}

// template returns the Job with a template at least as new as the effect's; nil means that the Job is gone. A cached Job that is
// suspended may have been resumed since, and is read again; so is one that names other parameters. The API server first answers from its own
// memory, which is cheaper than a read from etcd. What it has there may be some milliseconds old, so it does not prove that there is no Job.
func (a *Actor) template(ctx context.Context, key events.Key, e effect.CreatePod) (*batchv1.Job, error) {
	good := func(j *batchv1.Job) bool {
		return j.Generation >= e.Generation && !suspended(j) && namesParameters(j, e)
	}
	return a.jobs.load(ctx, cluster.IdentityOfKey(key), good, func(ctx context.Context) (*batchv1.Job, error) {
		j, err := a.readJob(ctx, key.Namespace, e.Job, anyVersion)
		if err != nil || j != nil && j.UID == key.UID && good(j) {
			return j, err
		}
		return a.getJob(ctx, key, e.Job)
	})
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// meetPod finds out who created the Pod that has the name already. If this Job did, the effect succeeded earlier without an
// answer. A foreign Pod, or one that has disappeared since and may have been either, burns the serial, which costs nothing.
func (a *Actor) meetPod(ctx context.Context, key events.Key, e effect.CreatePod, taken error) ([]events.Event, error) {
	p, err := a.getPod(ctx, key, e.Name)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case isIntended(p, key, e.Serial):
		a.owned.saw(p)
		return sawPod(p), nil
	}
	return a.refused(e, e.Serial, taken)
}

// findPod looks whether the Pod with that serial was created. A foreign Pod of the same name does not count.
func (a *Actor) findPod(ctx context.Context, key events.Key, e effect.FindPod) ([]events.Event, error) {
	p, err := a.getPod(ctx, key, e.Name)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case isIntended(p, key, e.Serial):
		return sawPod(p), nil
	}
	return []events.Event{events.PodGone{Pod: events.Pod{Name: e.Name, Serial: e.Serial, Index: events.NoIndex}}}, nil
}

// isIntended reports whether the Pod, which may be nil, is the one to which the key's Job gave that serial. An orphan is recognised
// by its label and may be adopted; one that is being deleted never is, and nothing is to be waited for.
func isIntended(p *corev1.Pod, key events.Key, serial int) bool {
	if p == nil || events.OwnerUID(p) != key.UID {
		return false
	}
	seen := events.ProjectPod(p)
	return seen.Serial == serial && (!seen.Orphan || !seen.Deleting)
}
