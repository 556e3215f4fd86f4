package convert

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

const (
	// DefaultSettle is how long the built-in controller may take to finish what it had begun when a CronJob was suspended.
	DefaultSettle = 10 * time.Second
	// lookAgain is the interval at which a cut-over that waits for a Job lists the Jobs.
	lookAgain = time.Second
	// fieldManager is the plugin's name in metadata.managedFields.
	fieldManager = "kubectl-jobstream"
)

// Cutover hands schedules of a running cluster from one controller to the other. Exactly one of them runs each nominal time:
//
//	step                                          after an interruption here
//	try to create the successor (dry run)         nothing has changed
//	suspend the original                          nothing runs; the label jobstream.dev/suspended-by=convert names the reason
//	wait until the original's controller is done  the same
//	read the last nominal time that has a Job     the same
//	create the successor, from that time on       the cut-over is complete
//
// A user who repeats the command after an interruption resumes at the interrupted step; times that passed meanwhile are caught up
// as after a downtime. An object that its user had suspended is converted too, and stays suspended on both sides.
type Cutover struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Options Options
	// Settle is the wait after a suspension; 0 means DefaultSettle.
	Settle time.Duration
	// DryRun asks the API server whether each request would succeed, and changes nothing.
	DryRun bool
	// Say prints one line of progress for the user.
	Say func(format string, args ...any)
}

// stepper is the cut-over of one object.
type stepper interface {
	name() string
	// check converts the object, and has the API server validate the result in a dry run. It changes nothing.
	check(ctx context.Context) error
	// about returns the report of check, and whether an earlier cut-over has completed.
	about() (r Report, done bool)
	suspend(ctx context.Context) error
	// finish creates the successor. busy names what it still waits for; "" means that it is done.
	finish(ctx context.Context) (busy string, err error)
}

func (c Cutover) scheduledJobs(namespace string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(namespace)
}

// carryOut checks all objects, and changes none unless every check succeeds.
func (c Cutover) carryOut(ctx context.Context, all []stepper) (reports []Report, err error) {
	var errs []error
	left := slices.DeleteFunc(all, func(s stepper) bool {
		if err := s.check(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name(), err))
		}
		r, done := s.about()
		reports = append(reports, r)
		return done
	})
	switch {
	case len(errs) > 0:
		return reports, fmt.Errorf("nothing has been changed: %w", errors.Join(errs...))
	case c.DryRun:
		return reports, nil
	}
	return reports, c.steps(ctx, left)
}

// steps suspends all objects, waits once, and then creates the successors. An object that waits for a Job or fails does not delay
// the others.
func (c Cutover) steps(ctx context.Context, all []stepper) error {
	var errs []error
	fail := func(s stepper, err error) { errs = append(errs, fmt.Errorf("%s: %w", s.name(), err)) }
	left := slices.DeleteFunc(all, func(s stepper) bool {
		err := s.suspend(ctx)
		if err != nil {
			fail(s, err)
		}
		return err != nil
	})
	wait := cmp.Or(c.Settle, DefaultSettle)
	for told := map[string]bool{}; len(left) > 0; wait = lookAgain {
		if err := sleep(ctx, wait); err != nil {
			errs = append(errs, err)
			break
		}
		left = slices.DeleteFunc(left, func(s stepper) bool {
			busy, err := s.finish(ctx)
			switch {
			case err != nil:
				fail(s, err)
			case busy != "" && !told[s.name()]:
				told[s.name()] = true
				c.Say("%s: waiting for %s", s.name(), busy)
			}
			return err != nil || busy == ""
		})
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w\nwhat is suspended goes on where it stopped when you repeat the command", errors.Join(errs...))
	}
	return nil
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

// mine reports whether a cut-over, not the object's user, suspended it.
func mine(o metav1.Object, suspend *bool) bool {
	return suspend != nil && *suspend && o.GetLabels()[v1alpha1.SuspendedByLabel] == v1alpha1.SuspendedByConvert
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
	b, err := json.Marshal(plain) // turns numbers into the types of the API machinery
	if err != nil {
		return nil, r, err
	}
	out := &unstructured.Unstructured{}
	if !r.Refused() {
		err = out.UnmarshalJSON(bytes.TrimSpace(b))
	}
	return out, r, err
}

// suspension returns the patch that suspends an object.
func suspension(uid types.UID) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}},"spec":{"suspend":true}}`, uid, v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByConvert)
}

// madeBy returns the latest nominal time among the Jobs that an object owns, and the name of one that still runs.
func (c Cutover) madeBy(ctx context.Context, namespace string, owner types.UID) (last time.Time, running string, err error) {
	jobs, err := c.Client.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return time.Time{}, "", err
	}
	for _, j := range jobs.Items {
		if ref := metav1.GetControllerOf(&j); ref == nil || ref.UID != owner {
			continue
		}
		if at, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil && at.After(last) {
			last = at
		}
		if !finished(&j) {
			running = j.Name
		}
	}
	return last, running, nil
}

func finished(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == "True" {
			return true
		}
	}
	return false
}
