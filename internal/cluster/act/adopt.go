package act

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// ownerPatch merges an owner reference into a Pod, or removes the one with that UID.
type ownerPatch struct {
	Directive string `json:"$patch,omitempty"`
	metav1.OwnerReference
}

// adoptPod makes the Job the Pod's owner. It reads the current Job first (upstream: CanAdopt), because an orphan of a Job that
// was deleted, and created again under the same name, must not go to a Job that does not exist.
func (a *Actor) adoptPod(ctx context.Context, key events.Key, e effect.AdoptPod) ([]events.Event, error) {
	j, err := a.getJob(ctx, key, e.Job)
	switch {
	case err != nil:
		return a.refused(e, e.Serial, err)
	case j == nil:
		a.forgetJob(key)
		return missedJob(e.Job), nil
	}
	a.jobs.saw(j)
	if j.DeletionTimestamp != nil || !a.claim.Matches(j) {
		return a.sawJob(j), nil
	}
	p, facts, err := a.adoptee(ctx, key, e, j)
	if p == nil {
		return facts, err
	}
	adopted, err := a.patchPod(ctx, key, e.Name, adoption(j, p, e))
	switch {
	case err == nil:
		a.owned.saw(adopted)
		return sawPod(adopted), nil
	case preconditionFailed(err):
		if p, facts, again := a.adoptee(ctx, key, e, j); p == nil {
			return facts, again
		}
	}
	return a.refused(e, e.Serial, err) // the Pod is unchanged, so the patch itself was refused
}

// adoptee reads the current Pod. nil means that there is nothing to adopt, and then the facts have the reason: the Pod is gone,
// belongs to another controller, or differs from what the effect knew. adoptee matches the Job's selector again, since labels may
// have changed.
func (a *Actor) adoptee(ctx context.Context, key events.Key, e effect.AdoptPod, j *batchv1.Job) (*corev1.Pod, []events.Event, error) {
	p, err := a.getPod(ctx, key, e.Name)
	if err != nil {
		facts, err := a.refused(e, e.Serial, err)
		return nil, facts, err
	}
	if p == nil || p.UID != e.UID {
		return nil, missedPod(e.Name, e.UID), nil
	}
	owner := metav1.GetControllerOf(p)
	switch {
	case owner != nil && owner.UID != key.UID, owner == nil && !selects(j, p):
		return nil, missedPod(e.Name, e.UID), nil
	case events.Version(p.ResourceVersion) != e.Version,
		owner != nil && !selects(j, p),
		owner == nil && p.DeletionTimestamp != nil: // a Pod that terminates needs no owner any more
		return nil, sawPod(p), nil
	}
	return p, nil, nil
}

// selects reports whether the selector of the Job matches the Pod's labels now.
func selects(j *batchv1.Job, p *corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	return err == nil && s.Matches(labels.Set(p.Labels))
}

// adoption returns the patch that adds what the Pod lacks. A Pod that is being deleted takes no finalizer.
func adoption(j *batchv1.Job, p *corev1.Pod, e effect.AdoptPod) podPatch {
	patch := podPatch{
		UID: e.UID, ResourceVersion: strconv.FormatUint(e.Version, 10),
		Labels:      map[string]*string{v1alpha1.ManagedLabel: new("true")},
		Annotations: map[string]string{v1alpha1.SerialAnnotation: strconv.Itoa(e.Serial)},
	}
	if metav1.GetControllerOf(p) == nil {
		patch.Owners = []any{ownerPatch{OwnerReference: *metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}}
	}
	if e.Hold && p.DeletionTimestamp == nil {
		patch.AddFinalizers = []string{batchv1.JobTrackingFinalizer}
	}
	return patch
}

// releasePod removes what makes the Pod the Job's. Its serial stays: it shows a Job that adopts the Pod that one of jobstream's
// Jobs may have counted it. Whatever has happened to the Pod meanwhile, it does not belong to the Job afterwards, unless the API
// server refuses.
func (a *Actor) releasePod(ctx context.Context, key events.Key, e effect.ReleasePod) ([]events.Event, error) {
	p, facts, err := a.changeable(ctx, key, e.Name, e.UID, false)
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case p == nil:
		return facts, nil
	}
	if j := a.jobs.peek(cluster.IdentityOfKey(key)); len(p.Labels) > events.MaxLabels && j != nil && selects(j, p) { // the next Pod would have as many labels
		return a.refused(e, events.NoSerial, userError{"TooManyLabels", fmt.Sprintf(
			"the Pod %s has more than %d labels, and the Job's selector asks for one beyond those: give its template fewer", p.Name, events.MaxLabels)})
	}
	_, err = a.patchPod(ctx, key, e.Name, podPatch{
		UID:             e.UID,
		ResourceVersion: p.ResourceVersion,
		DropFinalizers:  []string{batchv1.JobTrackingFinalizer},
		Owners:          []any{ownerPatch{Directive: "delete", OwnerReference: metav1.OwnerReference{UID: key.UID}}},
		Labels:          map[string]*string{v1alpha1.ManagedLabel: nil},
	})
	switch {
	case err == nil:
		a.meter.FinalizerRemoved()
		a.owned.pods.Remove(e.UID)
		return missedPod(e.Name, e.UID), nil
	case !preconditionFailed(err):
		return a.refused(e, events.NoSerial, err)
	}
	p, look := a.getPod(ctx, key, e.Name)
	switch {
	case look != nil:
		return a.refused(e, events.NoSerial, look)
	case p == nil || p.UID != e.UID:
		return missedPod(e.Name, e.UID), nil
	}
	return a.refused(e, events.NoSerial, err)
}
