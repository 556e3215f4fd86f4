package bulk

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// creators is how many objects are created at once.
const creators = 32

// Maker creates the n-th object, from 1 on. It is called by several goroutines at once.
type Maker func(ctx context.Context, n int) error

// Name is a name for the n-th object.
func Name(prefix string, n int) string { return fmt.Sprintf("%s-%06d", prefix, n) }

// Make creates or changes so many, some at a time. It ends with the first error.
func (c *Cluster) Make(ctx context.Context, what string, count int, one Maker) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next, made atomic.Int64
	var all sync.WaitGroup
	for range creators {
		all.Go(func() {
			for n := int(next.Add(1)); n <= count && ctx.Err() == nil; n = int(next.Add(1)) {
				if err := one(ctx, n); err != nil {
					fail(fmt.Errorf("make %s: %w", what, err))
					return
				}
				made.Add(1)
			}
		})
	}
	err := c.Await(ctx, what+" made", func() int { return int(made.Load()) }, count, time.Time{})
	fail(err)
	all.Wait()
	if err != nil {
		return context.Cause(ctx) // the first of all errors
	}
	return nil
}

// ScheduledJobs creates equal ScheduledJobs, the n-th in the namespace that in returns.
func (c *Cluster) ScheduledJobs(spec v1alpha1.ScheduledJobSpec, in func(n int) (namespace string)) Maker {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ScheduledJob{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind}, Spec: spec,
	})
	delete(content, "status")
	pattern := &unstructured.Unstructured{Object: content}
	return func(ctx context.Context, n int) error {
		if err != nil {
			return err
		}
		s := pattern.DeepCopy()
		s.SetName(Name("s", n))
		_, err := c.dynamic.Resource(scheduledJobs).Namespace(in(n)).Create(ctx, s, metav1.CreateOptions{})
		return err
	}
}

// CronJobs creates equal CronJobs in a namespace. Their time zone is UTC unless spec has one: the default is that of
// kube-controller-manager.
func (c *Cluster) CronJobs(spec batchv1.CronJobSpec, namespace string) Maker {
	if spec.TimeZone == nil {
		spec.TimeZone = ptr.To("Etc/UTC")
	}
	return func(ctx context.Context, n int) error {
		cronJob := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: Name("s", n)}, Spec: spec}
		_, err := c.Client.BatchV1().CronJobs(namespace).Create(ctx, cronJob, metav1.CreateOptions{})
		return err
	}
}

// EditScheduledJobs changes what ScheduledJobs has created, by a JSON merge patch.
func (c *Cluster) EditScheduledJobs(patch string, in func(n int) (namespace string)) Maker {
	return func(ctx context.Context, n int) error {
		_, err := c.dynamic.Resource(scheduledJobs).Namespace(in(n)).Patch(ctx, Name("s", n), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
}
