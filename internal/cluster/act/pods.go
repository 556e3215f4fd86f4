package act

import (
	"context"
	"encoding/json"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// removeFinalizer removes the finalizer. The API server retries the patch on its newest version of the Pod, so only another Pod
// of the same name, or another owner, can prevent it.
func (a *Actor) removeFinalizer(ctx context.Context, key events.Key, e effect.RemoveFinalizer) ([]events.Event, error) {
	if a.knownClaimed(key) {
		patch := a.withoutFinalizer(e.UID, 0)
		patch.Owners = ownerIs(key)
		p, err := a.patchPod(ctx, key, e.Name, patch)
		switch {
		case err == nil:
			return a.finalizerRemoved(p), nil
		case apierrors.IsNotFound(err) && !byAdmission(err):
			return missedPod(e.Name, e.UID), nil
		case !preconditionFailed(err):
			return a.refused(e, events.NoSerial, err)
		}
	}
	p, facts, err := a.changeable(ctx, key, e.Name, e.UID, true)
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case p == nil:
		return facts, nil
	}
	p, err = a.patchPod(ctx, key, e.Name, a.withoutFinalizer(e.UID, events.Version(p.ResourceVersion)))
	switch {
	case err == nil:
		return a.finalizerRemoved(p), nil
	case preconditionFailed(err):
		return a.lookAtPod(ctx, key, e, e.Name, e.UID, err)
	}
	return a.refused(e, events.NoSerial, err)
}

// finalizerRemoved returns the facts in the answer to a patch that removed the finalizer.
func (a *Actor) finalizerRemoved(p *corev1.Pod) []events.Event {
	a.meter.FinalizerRemoved()
	a.owned.saw(p)
	return sawPod(p)
}

// addFinalizer adds the finalizer. The API server refuses that as invalid on a Pod that is being deleted.
func (a *Actor) addFinalizer(ctx context.Context, key events.Key, e effect.AddFinalizer) ([]events.Event, error) {
	if !a.knownClaimed(key) {
		if p, facts, err := a.changeable(ctx, key, e.Name, e.UID, false); err != nil {
			return a.refused(e, events.NoSerial, err)
		} else if p == nil {
			return facts, nil
		}
	}
	p, err := a.patchPod(ctx, key, e.Name, podPatch{UID: e.UID, ResourceVersion: strconv.FormatUint(e.Version, 10), Owners: ownerIs(key),
		AddFinalizers: []string{batchv1.JobTrackingFinalizer}})
	switch {
	case err == nil:
		return sawPod(p), nil
	case preconditionFailed(err):
		return a.lookAtPod(ctx, key, e, e.Name, e.UID, err)
	}
	return a.refused(e, events.NoSerial, err)
}

// deletePod deletes a Pod, on request only after its finalizer is gone, and only if the Pod is as the effect knew it.
func (a *Actor) deletePod(ctx context.Context, key events.Key, e effect.DeletePod) ([]events.Event, error) {
	version := e.Version
	if !a.knownClaimed(key) || !a.owned.pod(e.UID, cluster.IdentityOfKey(key)) || e.RemoveFinalizer && version == 0 {
		p, facts, err := a.changeable(ctx, key, e.Name, e.UID, false)
		switch {
		case err != nil:
			return a.refused(e, events.NoSerial, err)
		case p == nil:
			return facts, nil
		case version == 0:
			version = events.Version(p.ResourceVersion)
		}
	}
	if e.RemoveFinalizer {
		p, err := a.patchPod(ctx, key, e.Name, a.withoutFinalizer(e.UID, version))
		switch {
		case preconditionFailed(err):
			return a.lookAtPod(ctx, key, e, e.Name, e.UID, err)
		case err != nil:
			return a.refused(e, events.NoSerial, err)
		}
		if facts := a.finalizerRemoved(p); vanished(p) {
			return facts, nil
		}
		version = events.Version(p.ResourceVersion)
	}
	preconditions := &metav1.Preconditions{UID: &e.UID}
	if version != 0 {
		v := strconv.FormatUint(version, 10)
		preconditions.ResourceVersion = &v
	}
	p := &corev1.Pod{}
	err := a.call(ctx, key.Namespace, a.core.Delete().Namespace(key.Namespace).Resource("pods").Name(e.Name).
		Body(&metav1.DeleteOptions{Preconditions: preconditions}), p)
	switch {
	case preconditionFailed(err):
		return a.lookAtPod(ctx, key, e, e.Name, e.UID, err)
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	}
	if p.UID != e.UID { // the answer may be only "success", and then the Pod is gone
		return missedPod(e.Name, e.UID), nil
	}
	report := e.Report
	if report == (effect.Report{}) {
		report = effect.Report{Reason: "SuccessfulDelete", Message: "Deleted pod: " + e.Name}
	}
	a.report(key, events.ProjectPod(p).Owner, report)
	return sawPod(p), nil
}

// preconditionFailed reports whether the Pod is not as the effect knew it; lookAtPod reads its current state.
func preconditionFailed(err error) bool {
	return !byAdmission(err) && (apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err))
}

// lookAtPod answers an effect whose precondition failed with the Pod's current state. If it is the same Pod with the same owner,
// "invalid" was about neither and is a refusal; except that a Pod that is being deleted takes no finalizer.
func (a *Actor) lookAtPod(ctx context.Context, key events.Key, e effect.Effect, name string, uid types.UID, cause error) ([]events.Event, error) {
	if apierrors.IsNotFound(cause) {
		return missedPod(name, uid), nil
	}
	p, err := a.getPod(ctx, key, name)
	switch {
	case err != nil:
		return a.refused(e, events.NoSerial, err)
	case p == nil || p.UID != uid || controlledByAnother(p, key):
		return missedPod(name, uid), nil
	case apierrors.IsInvalid(cause) && metav1.GetControllerOf(p) == nil && e.Kind() == effect.KindAddFinalizer:
		return sawPod(p), nil // it has no owner any more
	case apierrors.IsInvalid(cause) && (e.Kind() != effect.KindAddFinalizer || p.DeletionTimestamp == nil):
		return a.refused(e, events.ProjectPod(p).Serial, cause)
	}
	return sawPod(p), nil
}

// getPod reads the current Pod of that name; nil means that there is none.
func (a *Actor) getPod(ctx context.Context, key events.Key, name string) (*corev1.Pod, error) {
	p := &corev1.Pod{}
	err := a.call(ctx, key.Namespace, a.core.Get().Namespace(key.Namespace).Resource("pods").Name(name), p)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return p, nil
}

// podPatch is the metadata of a strategic merge patch. The API server takes UID and ResourceVersion as preconditions:
// another version is a conflict, another UID is "invalid", since a UID cannot be changed.
type podPatch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	AddFinalizers   []string  `json:"finalizers,omitempty"`
	DropFinalizers  []string  `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
	// Owners are merged by UID (ownerPatch, ownerIs). A label of nil is removed.
	Owners      []any              `json:"ownerReferences,omitempty"`
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]string  `json:"annotations,omitempty"`
	// ManagedFields of one empty entry reset field ownership.
	ManagedFields []struct{} `json:"managedFields,omitempty"`
}

// withoutFinalizer removes a Pod's finalizer. The Pod is at the end of its life, so its field ownership is no longer needed.
func (a *Actor) withoutFinalizer(uid types.UID, version uint64) podPatch {
	p := podPatch{UID: uid, DropFinalizers: []string{batchv1.JobTrackingFinalizer}}
	if version != 0 {
		p.ResourceVersion = strconv.FormatUint(version, 10)
	}
	if !a.keepFields {
		p.ManagedFields = make([]struct{}, 1)
	}
	return p
}

func (a *Actor) patchPod(ctx context.Context, key events.Key, name string, patch podPatch) (*corev1.Pod, error) {
	body, err := json.Marshal(map[string]podPatch{"metadata": patch})
	if err != nil {
		return nil, err
	}
	p := &corev1.Pod{}
	return p, a.call(ctx, key.Namespace, a.core.Patch(types.StrategicMergePatchType).
		Namespace(key.Namespace).Resource("pods").Name(name).Body(body), p)
}

// sawPod makes a fact of an answer that contains a Pod: a write that removed the last finalizer of a deleted Pod is answered with
// the Pod's last state.
func sawPod(p *corev1.Pod) []events.Event {
	if vanished(p) {
		return []events.Event{events.PodGone{Pod: events.ProjectPod(p)}}
	}
	return []events.Event{events.PodObserved{Pod: events.ProjectPod(p)}}
}

// vanished reports whether nothing keeps a deleted Pod any longer: no finalizer, no grace period.
func vanished(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && len(p.Finalizers) == 0 &&
		(p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds == 0)
}

func missedPod(name string, uid types.UID) []events.Event {
	return []events.Event{events.PodGone{Pod: events.Pod{Name: name, UID: uid, Serial: events.NoSerial, Index: events.NoIndex}}}
}
