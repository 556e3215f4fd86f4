package kubectl

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// errLate is the cause of a context that has run out of time.
var errLate = errors.New("it takes too long")

// jobs lists and watches the Jobs of the user's namespace.
func (c *client) jobs() source[*batchv1.Job] { return c.jobsIn(c.namespace) }

// jobsIn lists and watches the Jobs of a namespace.
func (c *client) jobsIn(namespace string) source[*batchv1.Job] {
	return source[*batchv1.Job]{
		list: func(ctx context.Context, o metav1.ListOptions) ([]*batchv1.Job, string, error) {
			l, err := c.BatchV1().Jobs(namespace).List(ctx, o)
			if err != nil {
				return nil, "", err
			}
			return pointers(l.Items), l.ResourceVersion, nil
		},
		watch: c.BatchV1().Jobs(namespace).Watch,
	}
}

// schedules lists and watches the ScheduledJobs of the user's namespace.
func (c *client) schedules() source[*v1alpha1.ScheduledJob] {
	return source[*v1alpha1.ScheduledJob]{
		list: func(ctx context.Context, o metav1.ListOptions) ([]*v1alpha1.ScheduledJob, string, error) {
			l, err := c.scheduled.list(ctx, c.namespace, o)
			if err != nil {
				return nil, "", err
			}
			return pointers(l.Items), l.ResourceVersion, nil
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.scheduled.watch(ctx, c.namespace, o)
		},
	}
}

// one follows the object with that name and UID until enough returns true, and returns its last version.
func one[T run.Object](ctx context.Context, s source[T], kind, name string, uid types.UID, lost func(error), enough func(T) bool) (last T, err error) {
	var gone error
	see := func(o T) bool {
		if o.GetUID() != uid {
			gone = fmt.Errorf("the %s %s was deleted, and another one has its name", kind, name)
			return true
		}
		last = o
		return enough(o)
	}
	err = s.follow(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}, eyes[T]{
		listed: func(items []T) bool {
			if len(items) == 0 {
				gone = fmt.Errorf("the %s %s was deleted", kind, name)
				return true
			}
			return see(items[0])
		},
		changed: func(how watch.EventType, o T) bool {
			switch how {
			case watch.Deleted:
				gone = fmt.Errorf("the %s %s was deleted", kind, name)
				return true
			case watch.Added, watch.Modified:
				return see(o)
			}
			return false
		},
		lost: lost,
	})
	if gone != nil {
		return last, gone
	}
	return last, err
}

// awaitTakenUp waits until jobstream has processed the Job or ScheduledJob for the first time, and returns it. It returns nil if
// that takes longer than within.
func (c *client) awaitTakenUp(ctx context.Context, o run.Object, within time.Duration) (run.Object, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errLate)
	defer cancel()
	var found run.Object
	var err error
	if _, is := o.(*v1alpha1.ScheduledJob); is {
		_, err = one(ctx, c.schedules(), v1alpha1.ScheduledJobKind, o.GetName(), o.GetUID(), nil, func(s *v1alpha1.ScheduledJob) bool {
			if s.Status.ObservedGeneration > 0 {
				found = s
			}
			return found != nil
		})
	} else {
		_, err = one(ctx, c.jobs(), "Job", o.GetName(), o.GetUID(), nil, func(j *batchv1.Job) bool {
			if j.Status.StartTime != nil || len(j.Status.Conditions) > 0 {
				found = j
			}
			return found != nil
		})
	}
	if errors.Is(err, errLate) {
		return nil, nil
	}
	return found, err
}

// awaitEnd shows the Job until it has ended, and returns its last version.
func (c *client) awaitEnd(ctx context.Context, name string, uid types.UID, v *view) (*batchv1.Job, error) {
	lost := func(err error) {
		v.Note(fmt.Sprintf("warning: %v; trying again", c.unreachable("cannot see the Job", err)))
	}
	return one(ctx, c.jobs(), "Job", name, uid, lost, func(j *batchv1.Job) bool {
		v.Show(j)
		return ended(j) != nil
	})
}

// ended returns the condition that ended the Job, Complete or Failed, or nil.
func ended(j *batchv1.Job) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}
