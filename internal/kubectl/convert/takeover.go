package convert

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// TakeOver makes ScheduledJobs take over from the CronJobs. It suspends nothing unless all can be converted. After that, a
// failure with one does not stop the others; the error names each.
func (c Cutover) TakeOver(ctx context.Context, from []batchv1.CronJob) ([]Report, error) {
	var all []stepper
	for i := range from {
		all = append(all, &takeover{Cutover: c, from: &from[i]})
	}
	return c.carryOut(ctx, all)
}

// takeover is the cut-over of one CronJob.
type takeover struct {
	Cutover
	from   *batchv1.CronJob
	to     *unstructured.Unstructured
	report Report
	// done reports whether the ScheduledJob exists from an earlier attempt.
	done bool
}

func (t *takeover) about() (Report, bool) { return t.report, t.done }

func (t *takeover) name() string { return "cronjob " + t.from.Namespace + "/" + t.from.Name }

// build converts the current CronJob.
func (t *takeover) build() error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.from)
	if err != nil {
		return err
	}
	object["kind"], object["apiVersion"] = cronJobKind, "batch/v1"
	if mine(t.from, t.from.Spec.Suspend) {
		unstructured.RemoveNestedField(object, "spec", "suspend")
	}
	if t.to, t.report, err = convertLive(object, t.Options, forward); err != nil {
		return err
	}
	if t.report.Refused() {
		return errors.New("it cannot be converted: see the report")
	}
	return unstructured.SetNestedField(t.to.Object, string(t.from.UID), "metadata", "annotations", v1alpha1.ConvertedFromAnnotation)
}

// check converts the CronJob, and has the API server validate the result in a dry run.
func (t *takeover) check(ctx context.Context) error {
	if err := t.build(); err != nil {
		return err
	}
	have, err := t.scheduledJobs(t.from.Namespace).Get(ctx, t.from.Name, metav1.GetOptions{})
	switch {
	case err == nil && have.GetAnnotations()[v1alpha1.ConvertedFromAnnotation] == string(t.from.UID):
		if have.GetLabels()[v1alpha1.SuspendedByLabel] == v1alpha1.SuspendedByConvert {
			return fmt.Errorf("its ScheduledJob from an earlier cut-over has handed back: delete that one first, with: kubectl delete scheduledjob %s -n %s", t.from.Name, t.from.Namespace)
		}
		t.done = true
		t.Say("scheduledjob %s/%s has taken over already", t.from.Namespace, t.from.Name)
		return nil
	case err == nil:
		return errors.New("a ScheduledJob with this name exists, and was not made from this CronJob: delete it, or rename it")
	case meta.IsNoMatchError(err):
		return unserved(err)
	case !apierrors.IsNotFound(err):
		return err
	}
	_, err = t.scheduledJobs(t.from.Namespace).Create(ctx, t.to, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	if apierrors.IsNotFound(err) && !namespaceGone(err) {
		return unserved(err)
	}
	return err
}

// suspended reports whether the user has suspended the CronJob.
func (t *takeover) suspended() bool {
	return t.from.Spec.Suspend != nil && *t.from.Spec.Suspend && !mine(t.from, t.from.Spec.Suspend)
}

// suspend stops the CronJob, and records that the plugin did so. The CronJob's UID is a precondition, because another client may
// have replaced it.
func (t *takeover) suspend(ctx context.Context) error {
	if t.suspended() {
		return nil
	}
	live, err := t.Client.BatchV1().CronJobs(t.from.Namespace).Patch(ctx, t.from.Name, types.MergePatchType, suspension(t.from.UID), metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("suspend it: %w", err)
	}
	t.from = live
	return nil
}

// finish creates the ScheduledJob from the current CronJob, beginning after the last nominal time that has a Job. If Jobs must
// not overlap, it waits for the running Job.
func (t *takeover) finish(ctx context.Context) (busy string, err error) {
	byUser := t.suspended()
	live, err := t.Client.BatchV1().CronJobs(t.from.Namespace).Get(ctx, t.from.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		return "", err
	case live.UID != t.from.UID || live.Spec.Suspend == nil || !*live.Spec.Suspend:
		return "", errors.New("another client has resumed or replaced it in the meantime")
	}
	t.from = live
	if err := t.build(); err != nil {
		return "", err
	}
	if !byUser {
		from, running, err := t.last(ctx)
		if err != nil {
			return "", err
		}
		if running != "" && live.Spec.ConcurrencyPolicy != batchv1.AllowConcurrent && live.Spec.ConcurrencyPolicy != "" {
			return "Job " + running + ", which must not overlap with the next", nil
		}
		if err := unstructured.SetNestedField(t.to.Object, from.UTC().Format(time.RFC3339), "spec", "startAfter"); err != nil {
			return "", err
		}
	}
	if _, err := t.scheduledJobs(t.from.Namespace).Create(ctx, t.to, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return "", fmt.Errorf("create the ScheduledJob: %w", err)
	}
	if byUser {
		t.Say("scheduledjob %s/%s created, suspended as the CronJob is", t.from.Namespace, t.from.Name)
		return "", nil
	}
	after, _, _ := unstructured.NestedString(t.to.Object, "spec", "startAfter")
	t.Say("scheduledjob %s/%s has taken over, from %s on", t.from.Namespace, t.from.Name, after)
	return "", nil
}

// last returns the last nominal time for which the CronJob has made a Job, or else its creation, and the name of a running Job of
// it. The CronJob's status may lag behind its Jobs.
func (t *takeover) last(ctx context.Context) (at time.Time, running string, err error) {
	at = t.from.CreationTimestamp.Time
	if s := t.from.Status.LastScheduleTime; s != nil && s.After(at) {
		at = s.Time
	}
	made, running, err := t.madeBy(ctx, t.from.Namespace, t.from.UID)
	if made.After(at) {
		at = made
	}
	return at, running, err
}
