package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

const (
	// DefaultSettle is how long the built-in controller may take to finish what it had begun when a CronJob was suspended.
	DefaultSettle = 10 * time.Second
	// lookAgain is how often a Job that somebody waits for is looked at, which takes a list.
	lookAgain = time.Second
	// fieldManager is who has written what, in metadata.managedFields.
	fieldManager = "kubectl-jobstream"
)

// Cutover hands schedules of a running cluster from one controller to the other, so that each nominal time is one's or the other's:
//
//	step                                       if it was the last one
//	try to create what takes over (dry run)    nothing has changed
//	suspend what has run so far                nothing runs, and the label jobstream.dev/suspended-by=convert says who did that
//	wait until its controller has finished     the same
//	read the last nominal time that has a Job  the same
//	create what takes over, from that time on  all is well
//
// Whoever does it again after any step goes on there: what has come meanwhile is made up for, as after a downtime. What was
// suspended before is converted, and stays suspended on both sides.
type Cutover struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Options Options
	// Settle is how long to wait after a suspension; 0 means DefaultSettle.
	Settle time.Duration
	// DryRun asks the API server whether it would work, and changes nothing.
	DryRun bool
	// Say tells the user what happens, a line at a time.
	Say func(format string, args ...any)
}

// TakeOver makes ScheduledJobs take over from the CronJobs. Nothing is suspended unless all of them can be converted. After that,
// what goes wrong with one does not keep the others; the error names each.
func (c Cutover) TakeOver(ctx context.Context, from []batchv1.CronJob) ([]Report, error) {
	var reports []Report
	var errs []error
	var all []*takeover
	for i := range from {
		t := &takeover{Cutover: c, from: &from[i]}
		if err := t.check(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.name(), err))
		}
		reports = append(reports, t.report)
		if !t.done {
			all = append(all, t)
		}
	}
	if len(errs) > 0 {
		return reports, fmt.Errorf("nothing has been changed: %w", errors.Join(errs...))
	}
	if c.DryRun || len(all) == 0 {
		return reports, nil
	}
	return reports, steps(ctx, all, c.settle)
}

// stepper is an object on its way.
type stepper interface {
	name() string
	suspend(ctx context.Context) error
	finish(ctx context.Context) error
}

// steps suspends all, waits once, and then makes what takes over. What goes wrong with one does not keep the others.
func steps[S stepper](ctx context.Context, all []S, wait func(context.Context) error) error {
	var errs []error
	var stopped []S
	for _, s := range all {
		if err := s.suspend(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name(), err))
			continue
		}
		stopped = append(stopped, s)
	}
	if err := wait(ctx); err != nil {
		stopped, errs = nil, append(errs, err)
	}
	for _, s := range stopped {
		if err := s.finish(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name(), err))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w\nwhat is suspended goes on where it has stopped when the same is done again", errors.Join(errs...))
	}
	return nil
}

func (c Cutover) settle(ctx context.Context) error {
	d := c.Settle
	if d == 0 {
		d = DefaultSettle
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// takeover is one CronJob on its way.
type takeover struct {
	Cutover
	from   *batchv1.CronJob
	to     *unstructured.Unstructured
	report Report
	// done says that the ScheduledJob exists, from an earlier attempt.
	done bool
}

func (t *takeover) name() string { return "cronjob " + t.from.Namespace + "/" + t.from.Name }

// mine says that we have suspended the CronJob, and not its user.
func mine(labels map[string]string) bool {
	return labels[v1alpha1.SuspendedByLabel] == v1alpha1.SuspendedByConvert
}

func (t *takeover) scheduledJobs() dynamic.ResourceInterface {
	return t.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(t.from.Namespace)
}

// check converts the CronJob, and asks the API server what it has against the result.
func (t *takeover) check(ctx context.Context) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.from)
	if err != nil {
		return err
	}
	object["kind"], object["apiVersion"] = cronJobKind, "batch/v1"
	if mine(t.from.Labels) {
		unstructured.RemoveNestedField(object, "spec", "suspend")
	}
	if t.to, t.report, err = convertLive(object, t.Options, forward); err != nil {
		return err
	}
	if t.report.Refused() {
		return errors.New("it cannot be converted: the report says why")
	}
	if err := unstructured.SetNestedField(t.to.Object, string(t.from.UID), "metadata", "annotations", v1alpha1.ConvertedFromAnnotation); err != nil {
		return err
	}
	have, err := t.scheduledJobs().Get(ctx, t.from.Name, metav1.GetOptions{})
	switch {
	case err == nil && have.GetAnnotations()[v1alpha1.ConvertedFromAnnotation] == string(t.from.UID):
		t.done = true
		t.Say("scheduledjob %s/%s has taken over already", t.from.Namespace, t.from.Name)
		return nil
	case err == nil:
		return errors.New("a ScheduledJob of this name exists, which was not made of it: delete that one, or rename it")
	case meta.IsNoMatchError(err):
		return unserved(err)
	case !apierrors.IsNotFound(err):
		return err
	}
	_, err = t.scheduledJobs().Create(ctx, t.to, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fieldManager})
	if apierrors.IsNotFound(err) && !namespaceGone(err) {
		return unserved(err)
	}
	return err
}

func unserved(err error) error {
	return fmt.Errorf("%w: this cluster does not know ScheduledJobs: kubectl apply -k deploy/crd", err)
}

func namespaceGone(err error) bool {
	s := apierrors.APIStatus(nil)
	return errors.As(err, &s) && s.Status().Details != nil && s.Status().Details.Kind == "namespaces"
}

// convertLive converts an object of the cluster.
func convertLive(object map[string]any, o Options, convert conversion) (*unstructured.Unstructured, Report, error) {
	var root yaml.Node
	if err := root.Encode(object); err != nil {
		return nil, Report{}, err
	}
	r, ok := convert(&root, o)
	if !ok {
		return nil, r, errors.New("it is of another kind")
	}
	var plain map[string]any
	if err := root.Decode(&plain); err != nil {
		return nil, r, err
	}
	b, err := json.Marshal(plain) // numbers as the API machinery knows them
	if err != nil {
		return nil, r, err
	}
	out := &unstructured.Unstructured{}
	if !r.Refused() {
		err = out.UnmarshalJSON(bytes.TrimSpace(b))
	}
	return out, r, err
}

// suspended says that the user has suspended the CronJob.
func (t *takeover) suspended() bool {
	return t.from.Spec.Suspend != nil && *t.from.Spec.Suspend && !mine(t.from.Labels)
}

// suspend stops the CronJob and says who did it. Its UID is a precondition: it may have been replaced meanwhile.
func (t *takeover) suspend(ctx context.Context) error {
	if t.suspended() {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}},"spec":{"suspend":true}}`, t.from.UID, v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByConvert)
	live, err := t.Client.BatchV1().CronJobs(t.from.Namespace).Patch(ctx, t.from.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("suspend it: %w", err)
	}
	t.from = live
	return nil
}

// finish makes the ScheduledJob, from the last nominal time on that the CronJob has a Job of. Where Jobs must not overlap it waits for
// the Job that runs.
func (t *takeover) finish(ctx context.Context) error {
	if !t.suspended() {
		from, err := t.last(ctx)
		if err != nil {
			return err
		}
		if err := unstructured.SetNestedField(t.to.Object, from.UTC().Format(time.RFC3339), "spec", "startAfter"); err != nil {
			return err
		}
	}
	if _, err := t.scheduledJobs().Create(ctx, t.to, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("create the ScheduledJob: %w", err)
	}
	if t.suspended() {
		t.Say("scheduledjob %s/%s created, suspended as the CronJob is", t.from.Namespace, t.from.Name)
		return nil
	}
	after, _, _ := unstructured.NestedString(t.to.Object, "spec", "startAfter")
	t.Say("scheduledjob %s/%s has taken over, from %s on", t.from.Namespace, t.from.Name, after)
	return nil
}

// last is the last nominal time that the CronJob has made a Job of, or else its creation. Its status may lag behind its Jobs.
func (t *takeover) last(ctx context.Context) (time.Time, error) {
	for waits := false; ; {
		live, err := t.Client.BatchV1().CronJobs(t.from.Namespace).Get(ctx, t.from.Name, metav1.GetOptions{})
		if err != nil {
			return time.Time{}, err
		}
		if live.UID != t.from.UID || live.Spec.Suspend == nil || !*live.Spec.Suspend {
			return time.Time{}, errors.New("somebody has resumed or replaced it meanwhile")
		}
		last := live.CreationTimestamp.Time
		if s := live.Status.LastScheduleTime; s != nil && s.After(last) {
			last = s.Time
		}
		jobs, err := t.Client.BatchV1().Jobs(t.from.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return time.Time{}, err
		}
		running := ""
		for _, j := range jobs.Items {
			if ref := metav1.GetControllerOf(&j); ref == nil || ref.UID != t.from.UID {
				continue
			}
			if at, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil && at.After(last) {
				last = at
			}
			if !finished(&j) {
				running = j.Name
			}
		}
		if running == "" || live.Spec.ConcurrencyPolicy == batchv1.AllowConcurrent || live.Spec.ConcurrencyPolicy == "" {
			return last, nil
		}
		if !waits {
			waits = true
			t.Say("%s: waiting for Job %s, which must not overlap with the next", t.name(), running)
		}
		if err := sleep(ctx, lookAgain); err != nil {
			return time.Time{}, err
		}
	}
}

func finished(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == "True" {
			return true
		}
	}
	return false
}
