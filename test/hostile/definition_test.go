package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// startsWithin is how long a starting trigger may take until it watches Jobs while the list of ScheduledJobs is unanswered. The
// API server waits 30 seconds for a conversion webhook.
const startsWithin = 25 * time.Second

// An administrator (no lesser user can) leaves the definition of ScheduledJobs half upgraded: they are stored in a version that
// only a webhook converts, and the webhook answers with errors, or not at all. So no ScheduledJob can be listed, watched, read
// or written. Jobs and Pods continue, even under a trigger that starts meanwhile; and ScheduledJobs continue once the webhook
// works, without a restart.
func TestScheduledJobsThatCannotBeListed(t *testing.T) {
	t.Parallel() // it waits for a minute
	s := own(t, harness.Config{})
	p := newPeace(t, s)
	p.Schedule(harness.Every("steady", "* * * * * *", "true", harness.KeepAll))
	p.AwaitSchedule("steady", timeout, "to run", func(s *v1alpha1.ScheduledJob) bool { return s.Status.Successful > 0 })
	webhook := convert(t, s)
	version := func(v string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v, Resource: v1alpha1.ScheduledJobResource}
	}
	newer := harness.Every("newer", "@yearly", "true")
	newer.TypeMeta = metav1.TypeMeta{APIVersion: version(secondVersion).GroupVersion().String(), Kind: v1alpha1.ScheduledJobKind}
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newer)
	if err != nil {
		t.Fatal(err)
	}
	delete(o, "status")
	harness.Until(t, timeout, "the second version to be served", func(ctx context.Context) error {
		_, err := objects(t, s).Resource(version(secondVersion)).Namespace(p.Namespace).Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{})
		return err
	})
	old := objects(t, s).Resource(version(v1alpha1.GroupVersion.Version)).Namespace(p.Namespace)
	harness.Until(t, timeout, "ScheduledJobs to be unreadable", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		switch _, err := old.List(ctx, metav1.ListOptions{}); {
		case err == nil:
			return errors.New("they can be listed")
		case !strings.Contains(err.Error(), "conversion webhook"):
			return err
		}
		return nil
	})
	p.round(t)
	unharmed(t, s)

	webhook.mode.Store(hangs)
	trigger := s.Triggers[0]
	restart(t, trigger)
	p.round(t)
	unharmed(t, s)
	if n := strings.Count(trigger.Printed(), "cannot list ScheduledJobs: Jobs are worked for"); n != 1 {
		t.Errorf("the trigger logs the cause %d times, not once", n)
	}

	webhook.mode.Store(converts)
	harness.Until(t, 3*time.Minute, "the trigger to list ScheduledJobs", func(context.Context) error {
		if !strings.Contains(trigger.Printed(), "ScheduledJobs are there now") {
			return errors.New("it has not logged that")
		}
		return nil
	})
	successful := func(ctx context.Context) (int64, error) {
		o, err := old.Get(ctx, "steady", metav1.GetOptions{})
		if err != nil {
			return 0, err
		}
		n, _, err := unstructured.NestedInt64(o.Object, "status", "successful")
		return n, err
	}
	var before int64
	harness.Until(t, timeout, "ScheduledJobs to be readable", func(ctx context.Context) (err error) { before, err = successful(ctx); return err })
	harness.Until(t, timeout, "ScheduledJobs to run again", func(ctx context.Context) error {
		if n, err := successful(ctx); err != nil || n <= before {
			return fmt.Errorf("%d Jobs had succeeded before, now %d: %w", before, n, err)
		}
		return nil
	})
	p.round(t)
	unharmed(t, s)
}

// restart kills the trigger and starts it again, three times if a busy machine takes too long.
func restart(t *testing.T, trigger *harness.Process) {
	t.Helper()
	var late error
	for range 3 {
		if err := errors.Join(trigger.Kill(), trigger.Start()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startsWithin)
		late = harness.Ready(ctx, trigger)
		cancel()
		if late == nil {
			return
		}
	}
	t.Fatalf("a trigger that starts while ScheduledJobs cannot be listed is not ready after %v: %v", startsWithin, late)
}
