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
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster"
)

// createPod makes the Pod from the Job's template. The Job is looked at before: a Pod of a Job that is gone would be
// collected as garbage, and a Job that is suspended or being deleted wants no more Pods.
func (a *Actor) createPod(ctx context.Context, key events.Key, e effect.CreatePod) ([]events.Event, error) {
	j, err := a.template(ctx, key, e)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case j == nil:
		return missedJob(e.Job), nil
	case suspended(j), j.DeletionTimestamp != nil, !a.claim.Ours(j), !namesParameters(j, e):
		return a.sawJob(j), nil
	}
	if err := wanted(j, e); err != nil {
		return a.refused(e, e.Serial, err)
	}
	parameters, err := a.parametersAt(ctx, key.Namespace, e)
	if err != nil {
		return a.refused(e, e.Serial, err)
	}
	pod := job.BuildPod(j, e, job.FirstEnv(j, a.tracePods, parameters))
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

// wanted says what is wrong with a Pod that this Job can never want: a name that is not its serial's, an index where it has none. No
// function decides on such a Pod; a state that somebody else has written may hold one. How many indexes there are is not asked: a
// Job may be scaled while the Pod of an index waits to be made, and then it is made, and deleted.
func wanted(j *batchv1.Job, e effect.CreatePod) error {
	switch {
	case e.Name != job.PodName(j.Name, j.UID, e.Serial, e.Index):
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

// template returns the Job with a template that is at least as new as the effect knew it; nil means that it is gone. What
// is remembered as suspended may have been resumed since, and is read again; so is one that names other values.
func (a *Actor) template(ctx context.Context, key events.Key, e effect.CreatePod) (*batchv1.Job, error) {
	return a.jobs.load(ctx, cluster.IdentityOfKey(key),
		func(j *batchv1.Job) bool {
			return j.Generation >= e.Generation && !suspended(j) && namesParameters(j, e)
		},
		func(ctx context.Context) (*batchv1.Job, error) { return a.getJob(ctx, key, e.Job) })
}

func suspended(j *batchv1.Job) bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// meetPod finds out whose Pod has the name already. Ours is a success that was not heard of. A stranger's, or one that
// has vanished since and may have been either, burns the serial, which costs nothing.
func (a *Actor) meetPod(ctx context.Context, key events.Key, e effect.CreatePod, taken error) ([]events.Event, error) {
	p, err := a.getPod(ctx, key, e.Name)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case isOurs(p, key, e.Serial):
		a.owned.saw(p)
		return sawPod(p), nil
	}
	return a.refused(e, e.Serial, taken)
}

// findPod looks whether the Pod with that serial has been made. A stranger of the same name is none of ours.
func (a *Actor) findPod(ctx context.Context, key events.Key, e effect.FindPod) ([]events.Event, error) {
	p, err := a.getPod(ctx, key, e.Name)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case isOurs(p, key, e.Serial):
		return sawPod(p), nil
	}
	return []events.Event{events.PodGone{Pod: events.Pod{Name: e.Name, Serial: e.Serial, Index: events.NoIndex}}}, nil
}

// isOurs says that the Pod, which may be nil, is the one that the Job of the key gave that serial. An orphan is known by its
// label and may be adopted; one that is being deleted never is, and nothing is to be waited for.
func isOurs(p *corev1.Pod, key events.Key, serial int) bool {
	if p == nil || events.OwnerUID(p) != key.UID {
		return false
	}
	seen := events.ProjectPod(p)
	return seen.Serial == serial && (!seen.Orphan || !seen.Deleting)
}
