package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// fieldManager is the plugin's name in metadata.managedFields.
const fieldManager = "kubectl-jobstream"

// undoTimeout is how long the deletion of a half-created set of objects may take.
const undoTimeout = 10 * time.Second

// create creates the objects of a run. With lists that takes three requests, in an order in which an interruption between any two
// of them, even by kill -9, runs nothing wrong and leaves nothing hidden:
//
//	request                             after an interruption here
//	create the Job, suspended           a suspended Job with the label jobstream.dev/suspended-by=run; it starts nothing
//	create its ConfigMap, owned by it   the same; the garbage collector deletes the ConfigMap along with the Job
//	resume the Job                      the run is complete
//
// If the ConfigMap came first, an interruption could leave one without an owner, because the owner's UID is not known before. If
// the Job were not suspended, jobstream would look for the ConfigMap too early, report its absence on the Job, and look again
// only a second later.
//
// If a request fails or is interrupted, create deletes the Job again.
func (c *client) create(ctx context.Context, objects run.Objects, dryRun bool) ([]run.Object, error) {
	options := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	owner, err := c.createOne(ctx, objects.First(), options)
	if err != nil {
		return nil, c.refused(objects.Owner, err)
	}
	created, err := c.complete(ctx, objects, owner, options)
	if err != nil && !dryRun {
		return nil, c.undo(ctx, objects.Owner, owner.GetUID(), err)
	}
	return created, err
}

// toTheEnd returns a context for requests that belong together. It outlives ctx by a short time, so that a user who interrupts
// the command does not cut off a request whose outcome would then be unknown.
func toTheEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(undoTimeout, cancel) })
	return whole, func() { stop(); cancel() }
}

// complete finishes the creation once the owner exists, and returns all objects.
func (c *client) complete(ctx context.Context, objects run.Objects, owner run.Object, options metav1.CreateOptions) ([]run.Object, error) {
	if asked, is := objects.Owner.(*batchv1.Job); is && ptr.Deref(asked.Spec.ManagedBy, "") != ptr.Deref(owner.(*batchv1.Job).Spec.ManagedBy, "") {
		return nil, errors.New("this cluster drops spec.managedBy, and its own controller would run the Job: jobstream needs Kubernetes 1.35 or newer")
	}
	second := objects.Second(owner.GetUID())
	if second == nil {
		return []run.Object{owner}, nil
	}
	lists, err := c.createOne(ctx, second, options)
	if err != nil {
		return nil, c.refused(second, err)
	}
	if third := objects.Third(owner.GetUID()); third != nil && options.DryRun == nil {
		resumed, err := c.BatchV1().Jobs(c.namespace).Patch(ctx, owner.GetName(), types.MergePatchType, third, metav1.PatchOptions{FieldManager: fieldManager})
		if err != nil {
			return nil, fmt.Errorf("cannot resume the Job %s, which was created suspended: %w", owner.GetName(), err)
		}
		owner = sameKind(resumed, owner)
	}
	return []run.Object{owner, lists}, nil
}

// createOne sends one object, and returns it as the API server has it.
func (c *client) createOne(ctx context.Context, o run.Object, options metav1.CreateOptions) (created run.Object, err error) {
	switch o := o.(type) {
	case *batchv1.Job:
		created, err = c.BatchV1().Jobs(c.namespace).Create(ctx, o, options)
	case *corev1.ConfigMap:
		created, err = c.CoreV1().ConfigMaps(c.namespace).Create(ctx, o, options)
	case *v1alpha1.ScheduledJob:
		created, err = c.scheduled.create(ctx, c.namespace, o, options)
	default:
		return nil, fmt.Errorf("run makes no %T", o)
	}
	return sameKind(created, o), err
}

// sameKind copies kind and apiVersion from the question to the answer, because client-go removes them.
func sameKind(answer, question run.Object) run.Object {
	answer.GetObjectKind().SetGroupVersionKind(question.GetObjectKind().GroupVersionKind())
	return answer
}

// undo deletes the owner, and with it what it owns, even if the user has interrupted the command. It returns why, extended by the
// outcome.
func (c *client) undo(ctx context.Context, owner run.Object, uid types.UID, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	var err error
	if _, is := owner.(*v1alpha1.ScheduledJob); is {
		err = c.scheduled.delete(ctx, c.namespace, owner.GetName(), uid)
	} else {
		err = c.BatchV1().Jobs(c.namespace).Delete(ctx, owner.GetName(), *deleteOnly(uid))
	}
	kind, resource := kindOf(owner)
	if err != nil {
		return fmt.Errorf("%w\nthe %s %s was created and starts nothing; it could not be deleted again (%w): kubectl delete %s %s -n %s",
			why, kind, owner.GetName(), err, resource, owner.GetName(), c.namespace)
	}
	return fmt.Errorf("%w\nthe %s %s is deleted again", why, kind, owner.GetName())
}
