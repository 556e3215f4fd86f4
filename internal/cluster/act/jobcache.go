package act

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	mu      sync.Mutex // guards all of it, entries too
	shelves shelves[cachedObject[T]]
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

	object T
	seen   time.Time
	owned  bool
	gone   bool // the object does not exist any more
}

// newJobCache makes a cache of Jobs that take at most limit bytes of memory.
func newJobCache(limit int, now func() time.Time) *jobCache {
	return &jobCache{now: now, shelves: newShelves[cachedObject[*batchv1.Job]](limit)}
}

// newScheduleCache makes a cache of ScheduledJobs that take at most limit bytes of memory.
func newScheduleCache(limit int, now func() time.Time) *scheduleCache {
	return &scheduleCache{now: now, shelves: newShelves[cachedObject[*cluster.ScheduledJob]](limit)}
}

// load returns the object of that identity. It reads it by fetch if it is unknown, does not satisfy the caller, or was observed
// too long ago. fetch returns nil if there is none.
func (c *objectCache[T]) load(ctx context.Context, of cluster.Identity, good func(T) bool, fetch func(context.Context) (T, error)) (none T, err error) {
	entry := c.entry(of)
	if err := entry.enter(ctx); err != nil {
		return none, err
	}
	defer entry.leave()
	if o, seen := c.get(entry); o != none && good(o) && c.now().Sub(seen) < maxJobAge {
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
	c.keep(entry, o) // all that wait at the gate get it, even if the entry was removed meanwhile
	return o, nil
}

func (c *objectCache[T]) get(e *cachedObject[T]) (T, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.object, e.seen
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

// peek returns the object if it is cached, otherwise nil.
func (c *objectCache[T]) peek(of cluster.Identity) (none T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.shelves.get(of, c.now()); e != nil {
		return e.object
	}
	return none
}

// saw caches an object from an answer of the API server.
func (c *objectCache[T]) saw(o T) { c.keep(c.entry(cluster.IdentityOf(o)), o) }

// keep puts the object into the entry, and the entry on the shelf, unless a newer one is there, since answers may overtake each
// other. The entry may have been removed from the shelf meanwhile, and another one be there; and it stays away if it was forgotten.
func (c *objectCache[T]) keep(e *cachedObject[T], o T) {
	of, weight, now := cluster.IdentityOf(o), weigh(o), c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.gone || e.newerThan(o) {
		return
	}
	e.object, e.seen = o, now
	if shelved := c.shelves.get(of, now); shelved != nil && shelved != e {
		e.owned = e.owned || shelved.owned
		if shelved.newerThan(o) {
			e.object, e.seen = shelved.object, shelved.seen
			return
		}
	}
	c.shelves.put(of, e, weight, now)
}

func (e *cachedObject[T]) newerThan(o T) bool {
	var none T
	return e.object != none && events.Version(e.object.GetResourceVersion()) > events.Version(o.GetResourceVersion())
}

// own records that the object's field ownership cannot be reset, as long as the object is cached.
func (c *objectCache[T]) own(of cluster.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place(of).owned = true
}

func (c *objectCache[T]) owned(of cluster.Identity) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.shelves.get(of, c.now())
	return e != nil && e.owned
}

func (c *objectCache[T]) forget(of cluster.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.shelves.get(of, c.now()); e != nil {
		e.object, e.gone = *new(T), true
	}
	c.shelves.remove(of)
}

// entry returns the entry of that identity, a new one if there is none.
func (c *objectCache[T]) entry(of cluster.Identity) *cachedObject[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.place(of)
}

func (c *objectCache[T]) place(of cluster.Identity) *cachedObject[T] {
	e := c.shelves.get(of, c.now())
	if e == nil {
		e = &cachedObject[T]{gate: newGate()}
		c.shelves.put(of, e, slot, c.now())
	}
	return e
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
