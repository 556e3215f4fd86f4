package bulk

import (
	"context"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Observations are objects that a watch has shown as wanted. They stay when the object is deleted. The zero value is none.
type Observations struct {
	mu   sync.Mutex
	seen sets.Set[types.UID]
}

// Add notes that the object is as wanted.
func (s *Observations) Add(object metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = sets.New[types.UID]()
	}
	s.seen.Insert(object.GetUID())
}

// Count returns their number.
func (s *Observations) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.Len()
}

// UIDs returns which objects they are, in no order.
func (s *Observations) UIDs() []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.UnsortedList()
}

// SeeJobs shows the metadata of Jobs, of all namespaces if the name is "".
func (c *Cluster) SeeJobs(ctx context.Context, namespace string, each func(*metav1.PartialObjectMetadata)) error {
	jobs := c.metadata.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace)
	see := func(object any) {
		if j, ok := object.(*metav1.PartialObjectMetadata); ok {
			each(j)
		}
	}
	return See(ctx, &metav1.PartialObjectMetadata{}, see, &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return jobs.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return jobs.Watch(ctx, o) },
	})
}

// Decided reports whether the reconciler has observed the ScheduledJob: its status then has decidedUntil.
func Decided(scheduledJob *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedString(scheduledJob.Object, "status", "decidedUntil")
	return found && err == nil
}

// WatchScheduledJobs observes ScheduledJobs that are as wanted, of all namespaces if the name is "".
func (c *Cluster) WatchScheduledJobs(ctx context.Context, namespace string, wanted func(*unstructured.Unstructured) bool) (*Observations, error) {
	schedules, seen := c.dynamic.Resource(scheduledJobs).Namespace(namespace), &Observations{}
	see := func(object any) {
		if u, ok := object.(*unstructured.Unstructured); ok && wanted(u) {
			seen.Add(u)
		}
	}
	return seen, See(ctx, &unstructured.Unstructured{}, see, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return schedules.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return schedules.Watch(ctx, o)
		},
	})
}
