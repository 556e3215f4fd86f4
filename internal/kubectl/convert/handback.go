package convert

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

const (
	// seenTimeout is how long a reconciler may take to see that a ScheduledJob has been suspended, and seenAgain how often that is
	// looked at.
	seenTimeout = time.Minute
	seenAgain   = 200 * time.Millisecond
)

// HandBack makes CronJobs take over from the ScheduledJobs: the same steps the other way round. A CronJob that TakeOver has suspended
// gets the spec that the ScheduledJob has now, and goes on. Where a CronJob begins is written into its status, before it is resumed.
func (c Cutover) HandBack(ctx context.Context, from []v1alpha1.ScheduledJob) ([]Report, error) {
	var reports []Report
	var errs []error
	var all []*handback
	for i := range from {
		h := &handback{Cutover: c, from: &from[i]}
		if err := h.check(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", h.name(), err))
		}
		reports = append(reports, h.report)
		if !h.done {
			all = append(all, h)
		}
	}
	if len(errs) > 0 {
		return reports, fmt.Errorf("nothing has been changed: %w", errors.Join(errs...))
	}
	if c.DryRun {
		return reports, nil
	}
	return reports, steps(ctx, all, func(context.Context) error { return nil })
}

// handback is one ScheduledJob on its way.
type handback struct {
	Cutover
	from   *v1alpha1.ScheduledJob
	to     *batchv1.CronJob
	report Report
	// have is the CronJob that exists already: one that TakeOver has suspended, or the one of an earlier attempt.
	have *batchv1.CronJob
	done bool
}

func (h *handback) name() string { return "scheduledjob " + h.from.Namespace + "/" + h.from.Name }

func (h *handback) scheduledJobs() dynamic.ResourceInterface {
	return h.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(h.from.Namespace)
}

// suspended says that the user has suspended the ScheduledJob.
func (h *handback) suspended() bool {
	return h.from.Spec.Suspend != nil && *h.from.Spec.Suspend && !mine(h.from.Labels)
}

// check converts the ScheduledJob, and asks the API server what it has against the result.
func (h *handback) check(ctx context.Context) error {
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
		return errors.New("it cannot be converted: the report says why")
	}
	h.to = &batchv1.CronJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(converted.Object, h.to); err != nil {
		return err
	}
	suspended := true // until its status says where it begins
	h.to.Spec.Suspend = &suspended
	h.mark(&h.to.ObjectMeta)
	have, err := h.Client.BatchV1().CronJobs(h.from.Namespace).Get(ctx, h.from.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = h.Client.BatchV1().CronJobs(h.from.Namespace).Create(ctx, h.to, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
		return err
	case err != nil:
		return err
	case have.Annotations[v1alpha1.ConvertedFromAnnotation] == string(h.from.UID) && !mine(have.Labels):
		h.done = true
		h.Say("cronjob %s/%s has taken over already", h.from.Namespace, h.from.Name)
	case !mine(have.Labels):
		return errors.New("a CronJob of this name exists, which was not suspended for it: delete that one, or rename it")
	}
	h.have = have
	return nil
}

// mark says where the CronJob comes from, and that it is suspended until it is ready.
func (h *handback) mark(m *metav1.ObjectMeta) {
	metav1.SetMetaDataAnnotation(m, v1alpha1.ConvertedFromAnnotation, string(h.from.UID))
	metav1.SetMetaDataLabel(m, v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByConvert)
}

func (h *handback) finish(ctx context.Context) error {
	from, err := h.last(ctx)
	if err != nil {
		return err
	}
	to, err := h.put(ctx)
	if err != nil {
		return err
	}
	jobs := h.Client.BatchV1().CronJobs(to.Namespace)
	if !from.IsZero() {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"lastScheduleTime":%q}}`, to.UID, from.UTC().Format(time.RFC3339))
		if _, err := jobs.Patch(ctx, to.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}, "status"); err != nil {
			return fmt.Errorf("write where the CronJob begins: %w", err)
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:null}},"spec":{"suspend":%t}}`, to.UID, v1alpha1.SuspendedByLabel, h.suspended())
	if _, err := jobs.Patch(ctx, to.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("resume the CronJob: %w", err)
	}
	if h.suspended() {
		h.Say("cronjob %s/%s is there, suspended as the ScheduledJob is", to.Namespace, to.Name)
		return nil
	}
	h.Say("cronjob %s/%s has taken over, from %s on", to.Namespace, to.Name, from.UTC().Format(time.RFC3339))
	return nil
}

// put creates the CronJob, or gives the one that is there the spec that the ScheduledJob has now. It is suspended.
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
		if live.UID != h.have.UID || !mine(live.Labels) {
			return nil, errors.New("somebody has resumed or replaced the CronJob meanwhile")
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

// suspend stops the ScheduledJob and says who did it.
func (h *handback) suspend(ctx context.Context) error {
	if h.suspended() {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}},"spec":{"suspend":true}}`, h.from.UID, v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByConvert)
	if _, err := h.scheduledJobs().Patch(ctx, h.from.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("suspend it: %w", err)
	}
	return nil
}

// last waits until a reconciler has seen the suspension, and returns the last nominal time that was decided otherwise than by that; zero
// where the user had suspended the ScheduledJob.
func (h *handback) last(ctx context.Context) (time.Time, error) {
	if h.suspended() {
		return time.Time{}, nil
	}
	var waits bool
	for since := time.Now(); ; {
		live, err := h.scheduledJobs().Get(ctx, h.from.Name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, err
		}
		var j v1alpha1.ScheduledJob
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &j); err != nil {
			return time.Time{}, err
		}
		switch {
		case j.UID != h.from.UID || j.Spec.Suspend == nil || !*j.Spec.Suspend:
			return time.Time{}, errors.New("somebody has resumed or replaced it meanwhile")
		case j.Status.ObservedGeneration < j.Generation:
			if time.Since(since) > seenTimeout {
				return time.Time{}, fmt.Errorf("no reconciler has seen within %v that it is suspended: is one running?", seenTimeout)
			}
		case len(j.Status.Active) == 0 || j.Spec.ConcurrencyPolicy == v1alpha1.AllowConcurrent || j.Spec.ConcurrencyPolicy == "":
			return decidedBefore(&j), nil
		case !waits:
			waits = true
			h.Say("%s: waiting for Job %s, which must not overlap with the next", h.name(), j.Status.Active[0].Name)
		}
		if err := sleep(ctx, seenAgain); err != nil {
			return time.Time{}, err
		}
	}
}

// decidedBefore is up to which nominal time everything was decided before the ScheduledJob was suspended: what was skipped because of
// that is the CronJob's.
func decidedBefore(j *v1alpha1.ScheduledJob) time.Time {
	var at time.Time
	for _, v := range j.Status.Recent {
		if v.Verdict == string(events.Skipped) && v.Reason == v1alpha1.SuspendedCondition {
			continue
		}
		end := v.Time.Time
		if v.Until != nil {
			end = v.Until.Time
		}
		if end.After(at) {
			at = end
		}
	}
	if s := j.Status.LastScheduleTime; s != nil && s.After(at) {
		at = s.Time
	}
	if at.IsZero() {
		at = j.CreationTimestamp.Time
	}
	if a := j.Spec.StartAfter; a != nil && j.Status.LastScheduleTime == nil && a.Before(&j.CreationTimestamp) && len(j.Status.Recent) == 0 {
		at = a.Time
	}
	return at
}
