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

// stepper is an object on its way.
type stepper interface {
	name() string
	// check converts the object, and asks the API server what it has against the result. It changes nothing.
	check(ctx context.Context) error
	// about is what check has found, and whether all is done already.
	about() (r Report, done bool)
	suspend(ctx context.Context) error
	// finish makes what takes over. busy is what it has to wait for, "" where it is done.
	finish(ctx context.Context) (busy string, err error)
}

func (c Cutover) scheduledJobs(namespace string) dynamic.ResourceInterface {
	return c.Dynamic.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.ScheduledJobResource)).Namespace(namespace)
}

// carryOut checks all, and goes on with none unless it can with each.
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

// steps suspends all, waits once, and then makes what takes over. Who has to wait for a Job, or goes wrong, does not keep the others.
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
		return fmt.Errorf("%w\nwhat is suspended goes on where it has stopped when the same is done again", errors.Join(errs...))
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

// mine says that we have suspended the object, and not its user.
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

// suspension is the patch that suspends an object.
func suspension(uid types.UID) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:%q}},"spec":{"suspend":true}}`, uid, v1alpha1.SuspendedByLabel, v1alpha1.SuspendedByConvert)
}

// madeBy is the latest nominal time of the Jobs that an object owns, and one of them that runs.
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
