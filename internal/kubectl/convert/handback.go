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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

const (
	// seenTimeout is how long a reconciler may take to notice that a ScheduledJob has been suspended.
	seenTimeout = time.Minute
	// aMoment is how long before the suspension a nominal time may lie that was skipped because of it.
	aMoment = time.Minute
)

// HandBack makes CronJobs take over from the ScheduledJobs: the steps of TakeOver in the other direction. A CronJob that TakeOver
// suspended gets the ScheduledJob's current spec, and resumes. HandBack writes the time at which the CronJob begins into its
// status before it resumes it.
func (c Cutover) HandBack(ctx context.Context, from []v1alpha1.ScheduledJob) ([]Report, error) {
	var all []stepper
	for i := range from {
		all = append(all, &handback{Cutover: c, from: &from[i]})
	}
	return c.carryOut(ctx, all)
}

// handback is the cut-over of one ScheduledJob.
type handback struct {
	Cutover
	from   *v1alpha1.ScheduledJob
	to     *batchv1.CronJob
	report Report
	// have is the CronJob that exists already: one that TakeOver suspended, or one from an earlier attempt.
	have *batchv1.CronJob
	done bool
	// since is when the plugin suspended it, by the local clock.
	since time.Time
}

func (h *handback) about() (Report, bool) { return h.report, h.done }

func (h *handback) name() string { return "scheduledjob " + h.from.Namespace + "/" + h.from.Name }

// suspended reports whether the user has suspended the ScheduledJob.
func (h *handback) suspended() bool {
	return h.from.Spec.Suspend != nil && *h.from.Spec.Suspend && !mine(h.from, h.from.Spec.Suspend)
}

// build converts the current ScheduledJob.
func (h *handback) build() error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(h.from)
	if err != nil {
		return err
	}
	object["kind"], object["apiVersion"] = v1alpha1.ScheduledJobKind, v1alpha1.GroupVersion.String()
	converted, report, err := convertLive(object, h.Options, back)
	h.report = report
	switch {
	case err != nil:
		return err
	case report.Refused():
		return errors.New("it cannot be converted: see the report")
	}
	h.to = &batchv1.CronJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(converted.Object, h.to); err != nil {
		return err
	}
	suspended := true // until its status has the time at which it begins
	h.to.Spec.Suspend = &suspended
	h.mark(&h.to.ObjectMeta)
	return nil
}

// check converts the ScheduledJob, and has the API server validate the result in a dry run.
func (h *handback) check(ctx context.Context) error {
	if err := h.build(); err != nil {
		return err
	}
	have, err := h.Client.BatchV1().CronJobs(h.from.Namespace).Get(ctx, h.from.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = h.Client.BatchV1().CronJobs(h.from.Namespace).Create(ctx, h.to, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
		return err
	case err != nil:
		return err
	case mine(have, have.Spec.Suspend):
		h.have = have
		return nil
	case have.Annotations[v1alpha1.ConvertedFromAnnotation] == string(h.from.UID):
		h.done = true
		h.Say("cronjob %s/%s has taken over already", h.from.Namespace, h.from.Name)
		return nil
	}
	return errors.New("a CronJob with this name exists, and was not suspended for this ScheduledJob: delete it, or rename it")
}

// mark records where the CronJob comes from, and that it is suspended until it is ready.
func (h *handback) mark(m *metav1.ObjectMeta) {
	metav1.SetMetaDataAnnotation(m, v1alpha1.ConvertedFromAnnotation, string(h.from.UID))
	metav1.SetMetaDataLabel(m, v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByConvert)
}

func (h *handback) finish(ctx context.Context) (busy string, err error) {
	byUser := h.suspended()
	from, busy, err := h.last(ctx, byUser)
	if err != nil || busy != "" {
		return busy, err
	}
	if err := h.build(); err != nil {
		return "", err
	}
	to, err := h.put(ctx)
	if err != nil {
		return "", err
	}
	jobs := h.Client.BatchV1().CronJobs(to.Namespace)
	if s := to.Status.LastScheduleTime; s == nil || from.After(s.Time) {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"lastScheduleTime":%q}}`, to.UID, from.UTC().Format(time.RFC3339))
		if _, err := jobs.Patch(ctx, to.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}, "status"); err != nil {
			return "", fmt.Errorf("write the time at which the CronJob begins: %w", err)
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:null}},"spec":{"suspend":%t}}`, to.UID, v1alpha1.SuspendedByLabel, byUser)
	if _, err := jobs.Patch(ctx, to.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return "", fmt.Errorf("resume the CronJob: %w", err)
	}
	if byUser {
		h.Say("cronjob %s/%s is there, suspended as the ScheduledJob is", to.Namespace, to.Name)
		return "", nil
	}
	h.Say("cronjob %s/%s has taken over, from %s on", to.Namespace, to.Name, from.UTC().Format(time.RFC3339))
	return "", nil
}

// put creates the CronJob suspended, or gives the existing one the ScheduledJob's current spec.
func (h *handback) put(ctx context.Context) (*batchv1.CronJob, error) {
	jobs := h.Client.BatchV1().CronJobs(h.from.Namespace)
	if h.have == nil {
		to, err := jobs.Create(ctx, h.to, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return nil, fmt.Errorf("create the CronJob: %w", err)
		}
		return to, nil
	}
	for {
		live, err := jobs.Get(ctx, h.have.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if live.UID != h.have.UID || !mine(live, live.Spec.Suspend) {
			return nil, errors.New("another client has resumed or replaced the CronJob in the meantime")
		}
		live.Spec = h.to.Spec
		h.mark(&live.ObjectMeta)
		to, err := jobs.Update(ctx, live, metav1.UpdateOptions{FieldManager: fieldManager})
		if apierrors.IsConflict(err) {
			continue
		}
		return to, err
	}
}

// suspend stops the ScheduledJob, and records that the plugin did so.
func (h *handback) suspend(ctx context.Context) error {
	h.since = time.Now()
	if h.suspended() {
		return nil
	}
	live, err := h.scheduledJobs(h.from.Namespace).Patch(ctx, h.from.Name, types.MergePatchType, suspension(h.from.UID), metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("suspend it: %w", err)
	}
	h.from = &v1alpha1.ScheduledJob{}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, h.from)
}

// last returns the last nominal time that belongs to the ScheduledJob. Before that is known, a reconciler must have processed the
// suspension and, if Jobs must not overlap, the last Job must have ended.
func (h *handback) last(ctx context.Context, byUser bool) (at time.Time, busy string, err error) {
	live, err := h.scheduledJobs(h.from.Namespace).Get(ctx, h.from.Name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, "", err
	}
	var j v1alpha1.ScheduledJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &j); err != nil {
		return time.Time{}, "", err
	}
	switch {
	case j.UID != h.from.UID || j.Spec.Suspend == nil || !*j.Spec.Suspend:
		return time.Time{}, "", errors.New("another client has resumed or replaced it in the meantime")
	case j.Status.ObservedGeneration < j.Generation && time.Since(h.since) > seenTimeout:
		return time.Time{}, "", fmt.Errorf("no reconciler has seen within %v that it is suspended: is one running?", seenTimeout)
	case j.Status.ObservedGeneration < j.Generation:
		return time.Time{}, "a reconciler to see that it is suspended", nil
	case len(j.Status.Active) > 0 && j.Spec.ConcurrencyPolicy != v1alpha1.AllowConcurrent && j.Spec.ConcurrencyPolicy != "":
		return time.Time{}, "Job " + j.Status.Active[0].Name + ", which must not overlap with the next", nil
	}
	made, _, err := h.madeBy(ctx, j.Namespace, j.UID)
	if at = decidedBefore(&j, byUser); made.After(at) {
		at = made
	}
	h.from = &j
	return at, "", err
}

// decidedBefore returns the nominal time up to which everything was decided before the plugin suspended the ScheduledJob: times
// skipped because of that suspension belong to the CronJob. Times skipped because the user had suspended it stay skipped.
func decidedBefore(j *v1alpha1.ScheduledJob, byUser bool) time.Time {
	at := j.CreationTimestamp.Time
	if a := j.Spec.StartAfter; a != nil {
		at = a.Time
	}
	if d := j.Status.DecidedUntil; byUser && d != nil {
		return d.Time
	}
	var since time.Time
	if c := meta.FindStatusCondition(j.Status.Conditions, v1alpha1.SuspendedCondition); c != nil && c.Status == metav1.ConditionTrue {
		since = c.LastTransitionTime.Time
	}
	for _, v := range j.Status.Recent {
		end := v.Time.Time
		if v.Until != nil {
			end = v.Until.Time
		}
		paused := v.Verdict == string(events.Skipped) && v.Reason == v1alpha1.SuspendedCondition && !end.Before(since.Add(-aMoment))
		if !paused && end.After(at) {
			at = end
		}
	}
	if s := j.Status.LastScheduleTime; s != nil && s.After(at) {
		at = s.Time
	}
	return at
}
