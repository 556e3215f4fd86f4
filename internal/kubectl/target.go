package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// target is a Job or ScheduledJob to be changed.
type target struct {
	resource, namespace, name string
	uid                       types.UID
	suspended, finished       bool
	paused                    bool                   // by pauseAfterFailures
	suspendedBy               string                 // the label's value
	scheduled                 *v1alpha1.ScheduledJob // or
	job                       *batchv1.Job
	where                     string // " in NAMESPACE" if there may be several
}

// String returns the name as kubectl prints it, such as job.batch/pi.
func (o target) String() string { return o.resource + "/" + o.name + o.where }

func targetJob(j *batchv1.Job) target {
	return target{resource: "job.batch", namespace: j.Namespace, name: j.Name, uid: j.UID, suspended: ptr.Deref(j.Spec.Suspend, false),
		finished: ended(j) != nil, suspendedBy: j.Labels[v1alpha1.SuspendedByLabel], job: j}
}

func targetScheduledJob(s *v1alpha1.ScheduledJob) target {
	return target{resource: "scheduledjob." + v1alpha1.Group, namespace: s.Namespace, name: s.Name, uid: s.UID, suspended: ptr.Deref(s.Spec.Suspend, false),
		finished: meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.FinishedCondition), suspendedBy: s.Labels[v1alpha1.SuspendedByLabel], scheduled: s,
		paused: events.ProjectScheduledJob(s).Paused()}
}

// object returns the object, with its kind, for scripts.
func (o target) object() runtime.Object {
	if o.scheduled != nil {
		s := o.scheduled.DeepCopy()
		s.APIVersion, s.Kind = v1alpha1.GroupVersion.String(), v1alpha1.ScheduledJobKind
		return s
	}
	j := o.job.DeepCopy()
	j.APIVersion, j.Kind = batchv1.SchemeGroupVersion.String(), jobKind
	return j
}

// project returns the fields that decide when the ScheduledJob is due.
func (o target) project() events.ScheduledJob { return events.ProjectScheduledJob(o.scheduled) }

// instead returns advice for an object that was suspended by other means than the user's spec: what to do rather than resume it.
func (o target) instead() string {
	switch {
	case o.suspendedBy == v1alpha1.SuspendedByRun:
		return fmt.Sprintf("it was interrupted, and the ConfigMap may be missing: delete it with: kubectl delete job %s -n %s, and run it again; --force resumes it nevertheless", o.name, o.namespace)
	case o.suspendedBy == v1alpha1.SuspendedByConvert && o.scheduled != nil:
		return fmt.Sprintf("a CronJob has taken over, and both would run: suspend the CronJob first with: kubectl patch cronjob %s -n %s --type=merge -p '{\"spec\":{\"suspend\":true}}'; --force resumes it then", o.name, o.namespace)
	case o.suspendedBy == v1alpha1.SuspendedByDrain:
		return "jobstream was being removed from this cluster: once it is back, --force resumes it"
	}
	return "ask its author first; --force resumes it nevertheless"
}

// targetsNamed gets the named objects of the namespace; a missing one is an error.
func (c *client) targetsNamed(ctx context.Context, names []named) (found []target, err error) {
	for _, n := range names {
		o, err := c.targetNamed(ctx, n)
		if err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, nil
}

func (c *client) targetNamed(ctx context.Context, n named) (target, error) {
	if n.kind != jobKind {
		s, err := c.scheduled.get(ctx, c.namespace, n.name)
		switch {
		case err == nil:
			return targetScheduledJob(s), nil
		case !apierrors.IsNotFound(err):
			return target{}, c.answered("cannot read the ScheduledJob "+n.name, err)
		case n.kind != "":
			return target{}, fmt.Errorf("there is no ScheduledJob %s in the namespace %s: -n chooses another", n.name, c.namespace)
		}
	}
	j, err := c.BatchV1().Jobs(c.namespace).Get(ctx, n.name, metav1.GetOptions{})
	switch {
	case err == nil:
		return targetJob(j), nil
	case !apierrors.IsNotFound(err):
		return target{}, c.answered("cannot read the Job "+n.name, err)
	case n.kind == "":
		return target{}, fmt.Errorf("there is neither a ScheduledJob nor a Job %s in the namespace %s: -n chooses another", n.name, c.namespace)
	}
	return target{}, fmt.Errorf("there is no Job %s in the namespace %s: -n chooses another", n.name, c.namespace)
}

// targetsSelected gets the ScheduledJobs that the selector selects, and jobstream's unfinished Jobs.
func (c *client) targetsSelected(ctx context.Context, kinds []string, namespace, selector string) (found []target, err error) {
	add := func(o target) {
		if namespace == metav1.NamespaceAll {
			o.where = " in " + o.namespace
		}
		if !o.finished {
			found = append(found, o)
		}
	}
	o := metav1.ListOptions{LabelSelector: selector}
	if slices.Contains(kinds, v1alpha1.ScheduledJobKind) {
		list, err := c.scheduled.list(ctx, namespace, o)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("this cluster does not know ScheduledJobs: write jobs, as in: suspend jobs -A, to leave them out: %w", err)
		} else if err != nil {
			return nil, c.answered("cannot list the ScheduledJobs", err)
		}
		for i := range list.Items {
			add(targetScheduledJob(&list.Items[i]))
		}
	}
	if slices.Contains(kinds, jobKind) {
		list, err := c.BatchV1().Jobs(namespace).List(ctx, o)
		if err != nil {
			return nil, c.answered("cannot list the Jobs", err)
		}
		for i := range list.Items {
			if j := &list.Items[i]; ptr.Deref(j.Spec.ManagedBy, "") == v1alpha1.DefaultManagedBy {
				add(targetJob(j))
			}
		}
	}
	return found, nil
}

// setSuspended changes spec.suspend of exactly that object: the patch has the UID, and the API server refuses to change the UID
// of another object with the same name. Resuming also removes the label that names what suspended the object. It returns the
// object as changed.
func (c *client) setSuspended(ctx context.Context, o target, suspend bool, options metav1.PatchOptions) (target, error) {
	metadata := map[string]any{"uid": o.uid}
	if o.suspendedBy != "" && !suspend {
		metadata["labels"] = map[string]any{v1alpha1.SuspendedByLabel: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"suspend": suspend}})
	if err != nil {
		return o, err
	}
	if o.scheduled != nil {
		o.scheduled, err = c.scheduled.patch(ctx, o.namespace, o.name, patch, options)
	} else {
		o.job, err = c.BatchV1().Jobs(o.namespace).Patch(ctx, o.name, types.MergePatchType, patch, options)
	}
	return o, err
}

// replaced reports whether the object has been deleted or replaced by another one with its name.
func replaced(err error) bool {
	if apierrors.IsNotFound(err) {
		return true
	}
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Details != nil && slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Field == "metadata.uid"
	})
}
