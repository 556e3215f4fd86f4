package cluster

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/jobstream/jobstream/events"
)

// maxJobAge bounds how long a Job is used without having been seen. A template can only change while the Job is
// suspended, and the status is written, and so the Job seen, whenever that changes; unless another process wrote it.
const maxJobAge = time.Minute

// jobCache remembers Jobs by UID for the sake of their templates, which never travel with effects, and of the whole
// object that a status PUT needs. Its Jobs are shared: nobody may change them.
type jobCache struct {
	now func() time.Time

	mu   sync.Mutex // makes get-or-add one step
	jobs *lru.Cache // types.UID -> *cachedJob
}

// cachedJob is one Job, nil until it was read. The gate is held while it is being read, so that 500 Pods that are to be
// created at once cost one GET.
type cachedJob struct {
	gate

	mu    sync.Mutex
	job   *batchv1.Job
	seen  time.Time
	owned bool
}

func newJobCache(size int, now func() time.Time) *jobCache {
	return &jobCache{now: now, jobs: lru.New(size)}
}

// load returns the Job of that UID, and reads it by fetch where it is unknown, not good enough, or was seen too long ago.
// fetch returns nil where there is none.
func (c *jobCache) load(ctx context.Context, uid types.UID, good func(*batchv1.Job) bool,
	fetch func(context.Context) (*batchv1.Job, error),
) (*batchv1.Job, error) {
	entry := c.entry(uid)
	if err := entry.enter(ctx); err != nil {
		return nil, err
	}
	defer entry.leave()
	if j, seen := entry.get(); j != nil && good(j) && c.now().Sub(seen) < maxJobAge {
		return j, nil
	}
	j, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	if j == nil {
		c.forget(uid)
		return nil, nil
	}
	entry.put(j, c.now())
	return j, nil
}

// at returns the Job if it is remembered at exactly that version, else nil.
func (c *jobCache) at(uid types.UID, version uint64) *batchv1.Job {
	e, ok := c.jobs.Get(uid)
	if !ok {
		return nil
	}
	if j, _ := e.(*cachedJob).get(); j != nil && events.Version(j.ResourceVersion) == version {
		return j
	}
	return nil
}

// name is that of the Job with that UID, "" where it is not remembered.
func (c *jobCache) name(uid types.UID) string {
	e, ok := c.jobs.Get(uid)
	if !ok {
		return ""
	}
	if j, _ := e.(*cachedJob).get(); j != nil {
		return j.Name
	}
	return ""
}

// saw remembers a Job that the API server has just answered with.
func (c *jobCache) saw(j *batchv1.Job) { c.entry(j.UID).put(j, c.now()) }

// own remembers that the Job's field ownership cannot be taken off.
func (c *jobCache) own(uid types.UID) {
	e := c.entry(uid)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.owned = true
}

func (c *jobCache) owned(uid types.UID) bool {
	e := c.entry(uid)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owned
}

func (c *jobCache) forget(uid types.UID) { c.jobs.Remove(uid) }

func (c *jobCache) entry(uid types.UID) *cachedJob {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.jobs.Get(uid); ok {
		return e.(*cachedJob)
	}
	e := &cachedJob{gate: newGate()}
	c.jobs.Add(uid, e)
	return e
}

func (e *cachedJob) get() (*batchv1.Job, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.job, e.seen
}

// put keeps the newer of two sights, since answers may overtake each other.
func (e *cachedJob) put(j *batchv1.Job, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.job != nil && events.Version(e.job.ResourceVersion) > events.Version(j.ResourceVersion) {
		return
	}
	e.job, e.seen = j, now
}

// gate lets one in at a time, and those who wait may give up.
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
