package act

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
)

// maxJobAge bounds how long an object is used without having been observed. The template of a Job can change only while it is
// suspended, and the Actor observes the Job when it writes the status after each such change, unless another process wrote it.
// The template of a ScheduledJob may change at any time: effects name the oldest acceptable version.
const maxJobAge = time.Minute

// objectCache caches Jobs or ScheduledJobs by their identity: for their templates, which never travel with effects, and for the
// whole object that a status PUT needs. Its objects are shared: callers must not change them.
type objectCache[T cacheable] struct {
	now func() time.Time

	mu      sync.Mutex // makes get-or-add one step
	objects *lru.Cache // identity -> *cachedObject[T]
}

// cacheable is a pointer to an object; nil stands for none.
type cacheable interface {
	comparable
	metav1.Object
}

type (
	jobCache      = objectCache[*batchv1.Job]
	scheduleCache = objectCache[*cluster.ScheduledJob]
)

// cachedObject is one object, nil until it was read. The gate is held while it is being read, so that the creation of 500 Pods at
// the same time costs one GET.
type cachedObject[T cacheable] struct {
	gate

	mu     sync.Mutex
	object T
	seen   time.Time
	owned  bool
}

func newJobCache(size int, now func() time.Time) *jobCache {
	return &jobCache{now: now, objects: lru.New(size)}
}

func newScheduleCache(size int, now func() time.Time) *scheduleCache {
	return &scheduleCache{now: now, objects: lru.New(size)}
}

// load returns the object of that identity. It reads it by fetch if it is unknown, does not satisfy the caller, or was observed
// too long ago. fetch returns nil if there is none.
func (c *objectCache[T]) load(ctx context.Context, of cluster.Identity, good func(T) bool, fetch func(context.Context) (T, error)) (none T, err error) {
	entry := c.entry(of)
	if err := entry.enter(ctx); err != nil {
		return none, err
	}
	defer entry.leave()
	if o, seen := entry.get(); o != none && good(o) && c.now().Sub(seen) < maxJobAge {
		return o, nil
	}
	o, err := fetch(ctx)
	if err != nil {
		return none, err
	}
	if o == none {
		c.forget(of)
		return none, nil
	}
	entry.put(o, c.now())
	return o, nil
}

// at returns the object if the cache has it at exactly that version, otherwise nil.
func (c *objectCache[T]) at(of cluster.Identity, version uint64) (none T) {
	if o := c.peek(of); o != none && events.Version(o.GetResourceVersion()) == version {
		return o
	}
	return none
}

// name returns the name of the object of that identity, "" if it is not cached.
func (c *objectCache[T]) name(of cluster.Identity) string {
	var none T
	if o := c.peek(of); o != none {
		return o.GetName()
	}
	return ""
}

func (c *objectCache[T]) peek(of cluster.Identity) (none T) {
	e, ok := c.objects.Get(of)
	if !ok {
		return none
	}
	o, _ := e.(*cachedObject[T]).get()
	return o
}

// saw caches an object from an answer of the API server.
func (c *objectCache[T]) saw(o T) { c.entry(cluster.IdentityOf(o)).put(o, c.now()) }

// own records that the object's field ownership cannot be reset.
func (c *objectCache[T]) own(of cluster.Identity) {
	e := c.entry(of)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owned = true
}

func (c *objectCache[T]) owned(of cluster.Identity) bool {
	e := c.entry(of)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owned
}

func (c *objectCache[T]) forget(of cluster.Identity) { c.objects.Remove(of) }

func (c *objectCache[T]) entry(of cluster.Identity) *cachedObject[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.objects.Get(of); ok {
		return e.(*cachedObject[T])
	}
	e := &cachedObject[T]{gate: newGate()}
	c.objects.Add(of, e)
	return e
}

func (e *cachedObject[T]) get() (T, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.object, e.seen
}

// put keeps the newer of two observations, since answers may overtake each other.
func (e *cachedObject[T]) put(o T, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var none T
	if e.object != none && events.Version(e.object.GetResourceVersion()) > events.Version(o.GetResourceVersion()) {
		return
	}
	e.object, e.seen = o, now
}

// gate lets one goroutine in at a time; waiting goroutines may give up.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter fails only if ctx ends.
func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g gate) leave() { <-g }
