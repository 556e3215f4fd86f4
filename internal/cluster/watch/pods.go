package watch

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/cluster"
)

// onPod publishes the events of the watch of marked Pods. An object with a finalizer is not deleted in one step: such a Pod has
// left the selection, not the cluster.
func (w *Watcher) onPod(ctx context.Context, t watch.EventType, o runtime.Object) error {
	p, ok := o.(*corev1.Pod)
	switch {
	case !ok:
		return nil
	case t == watch.Deleted && len(p.Finalizers) > 0 && p.DeletionTimestamp == nil:
		return w.left(ctx, p, w.unlabelled.recipients(p))
	case t == watch.Deleted:
		return w.missed(ctx, p, w.unlabelled.recipients(p))
	}
	return w.saw(ctx, p, w.unlabelled.recipients(p))
}

// onUnmarked publishes the events of the watch of Pods that other controllers have created for Jobs.
func (w *Watcher) onUnmarked(ctx context.Context, t watch.EventType, o runtime.Object) error {
	return w.unmarked(ctx, t, o, w.unlabelled.recipients)
}

// onUnlabelled publishes the events of the watch of a namespace whose Pods adopting Jobs may adopt.
func (w *Watcher) onUnlabelled(ctx context.Context, t watch.EventType, o runtime.Object) error {
	return w.unmarked(ctx, t, o, w.unlabelled.of)
}

// unmarked does not take a Pod that leaves the selection for deleted: a Job that adopts the Pod gives it the managed label.
func (w *Watcher) unmarked(ctx context.Context, t watch.EventType, o runtime.Object, whose func(*corev1.Pod) []types.UID) error {
	p, ok := o.(*corev1.Pod)
	switch {
	case !ok:
		return nil
	case t == watch.Deleted:
		return w.left(ctx, p, whose(p))
	}
	return w.saw(ctx, p, whose(p))
}

// saw reports the Pod to these Jobs, but not to its owner if the reconciler knows all that it shows.
func (w *Watcher) saw(ctx context.Context, p *corev1.Pod, jobs []types.UID) error {
	if len(jobs) == 0 {
		return nil
	}
	s, owner := events.ProjectPod(p), events.OwnerUID(p)
	if slices.Contains(jobs, owner) {
		w.config.Meter.SawPod(p.Namespace, owner, s)
	}
	_, marked := p.Labels[v1alpha1.ManagedLabel]
	redundant := marked && job.Redundant(s, w.config.Now().Sub(s.Created))
	for _, uid := range jobs {
		if redundant && uid == owner {
			continue
		}
		if err := w.publish(ctx, p.Namespace, uid, events.PodObserved{Pod: s}); err != nil {
			return err
		}
	}
	return nil
}

func (w *Watcher) missed(ctx context.Context, p *corev1.Pod, jobs []types.UID) error {
	w.config.Meter.MissedPod(p.UID)
	for _, uid := range jobs {
		if err := w.publish(ctx, p.Namespace, uid, events.PodGone{Pod: events.ProjectPod(p)}); err != nil {
			return err
		}
	}
	return nil
}

// left reports to these Jobs what has become of a Pod that leaves a watch:
//
//	it does not exist                  it is gone
//	it concerns the Job no more        the same: ReleasePod took the label off, or a user gave it away
//	another watch shows it             that watch tells
//	only its labels have changed       the Job gets its current state, once; no watch would show it again
func (w *Watcher) left(ctx context.Context, p *corev1.Pod, jobs []types.UID) error {
	if len(jobs) == 0 {
		return nil
	}
	live, err := w.look(ctx, p)
	switch {
	case err != nil:
		return err
	case live == nil:
		return w.missed(ctx, p, jobs)
	}
	still := w.unlabelled.recipients(live)
	for _, uid := range jobs {
		switch {
		case !slices.Contains(still, uid):
			err = w.missed(ctx, p, []types.UID{uid})
		case !w.watched(live, uid):
			if s := events.ProjectPod(live); s.Labels == nil && !s.Orphan {
				w.log.Warn("the label "+v1alpha1.ManagedLabel+" was taken from a Pod that is still needed: put it back, or delete the Pod",
					"namespace", p.Namespace, "pod", p.Name)
			}
			err = w.saw(ctx, live, []types.UID{uid})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watched reports whether a watch of this trigger reports the Pod to the Job.
func (w *Watcher) watched(p *corev1.Pod, job types.UID) bool {
	has := func(label string) bool { _, ok := p.Labels[label]; return ok }
	return has(v1alpha1.ManagedLabel) ||
		w.config.Claim.Unmanaged && has(batchv1.ControllerUidLabel) ||
		slices.Contains(w.unlabelled.of(p), job)
}

// look reads the current Pod, by a list of one: a trigger may list, and nothing else. nil means that it is gone.
func (w *Watcher) look(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, cluster.PageTimeout)
	defer cancel()
	list, err := w.config.Client.CoreV1().Pods(p.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].UID == p.UID {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}
