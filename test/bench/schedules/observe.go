package main

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// observations are objects as a watch shows them, each with the time at which it first was as wanted. A reflector stores them
// instead of the objects, and lists again by itself after a broken watch.
type observations struct {
	wanted func(object any) bool

	mu     sync.Mutex
	first  map[types.UID]time.Time
	owners map[types.UID]int // the number of each owner's objects
	synced chan struct{}
	once   sync.Once
}

// Add implements cache.ReflectorStore.
func (s *observations) Add(object any) error {
	now := time.Now()
	meta, ok := object.(metav1.Object)
	if !ok || !s.wanted(object) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.first[meta.GetUID()]; known {
		return nil
	}
	s.first[meta.GetUID()] = now
	if owner := metav1.GetControllerOf(meta); owner != nil {
		s.owners[owner.UID]++
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *observations) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore: observations stay.
func (s *observations) Delete(any) error { return nil }

// Replace implements cache.ReflectorStore.
func (s *observations) Replace(objects []any, _ string) error {
	for _, o := range objects {
		_ = s.Add(o)
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *observations) Resync() error { return nil }

// count returns their number.
func (s *observations) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.first)
}

// since returns the times from then to each observation, in no order.
func (s *observations) since(then time.Time) (all []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.first {
		all = append(all, at.Sub(then))
	}
	return all
}

// tooMany returns how many objects there are beyond one for each owner.
func (s *observations) tooMany() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, has := range s.owners {
		n += has - 1
	}
	return n
}

// watchJobs observes new Jobs, only their metadata.
func (c *cluster) watchJobs(ctx context.Context, namespace string) (*observations, error) {
	jobs := c.metadata.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace)
	return see(ctx, &metav1.PartialObjectMetadata{}, func(any) bool { return true }, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return jobs.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return jobs.Watch(ctx, o)
		},
	})
}

// watchDecided observes ScheduledJobs once the reconciler has: their status then has decidedUntil.
func (c *cluster) watchDecided(ctx context.Context, namespace string) (*observations, error) {
	schedules := c.dynamic.Resource(scheduledJobs).Namespace(namespace)
	decided := func(object any) bool {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return false
		}
		_, found, err := unstructured.NestedString(u.Object, "status", "decidedUntil")
		return found && err == nil
	}
	return see(ctx, &unstructured.Unstructured{}, decided, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return schedules.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return schedules.Watch(ctx, o)
		},
	})
}

// see watches until ctx ends. It returns once the watch is established.
func see(ctx context.Context, kind any, wanted func(any) bool, from cache.ListerWatcher) (*observations, error) {
	s := &observations{wanted: wanted, first: map[types.UID]time.Time{}, owners: map[types.UID]int{}, synced: make(chan struct{})}
	go cache.NewReflectorWithOptions(from, kind, s, cache.ReflectorOptions{}).RunWithContext(ctx)
	select {
	case <-s.synced:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
