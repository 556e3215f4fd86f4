package bulk

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// sink hands what a watch shows to a function. A reflector stores into it, and lists again by itself after a broken watch.
type sink struct {
	see    func(object any)
	synced chan struct{}
	once   sync.Once
}

// Add implements cache.ReflectorStore.
func (s *sink) Add(object any) error { s.see(object); return nil }

// Update implements cache.ReflectorStore.
func (s *sink) Update(object any) error { s.see(object); return nil }

// Delete implements cache.ReflectorStore: what was seen stays seen.
func (s *sink) Delete(any) error { return nil }

// Replace implements cache.ReflectorStore.
func (s *sink) Replace(objects []any, _ string) error {
	for _, o := range objects {
		s.see(o)
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *sink) Resync() error { return nil }

// See calls each with every object that is listed, added or changed, one after the other, until ctx ends. It returns once the watch
// is established, and lists again by itself when it breaks, so an object may come again as it was.
func See(ctx context.Context, kind any, each func(object any), from cache.ListerWatcher) error {
	s := &sink{see: each, synced: make(chan struct{})}
	go cache.NewReflectorWithOptions(from, kind, s, cache.ReflectorOptions{}).RunWithContext(ctx)
	select {
	case <-s.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
