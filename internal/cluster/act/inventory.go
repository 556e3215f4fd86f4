package act

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/internal/cluster"
)

// inventoryTimeout bounds two complete lists of the largest cluster.
const inventoryTimeout = 5 * time.Minute

// takeInventory answers with a snapshot of the Job. A new Job costs one GET, and its snapshot has no list of Pods: what a worker
// with a State that is lost may have created is found by its name. The same holds for a Job that is not claimed.
func (a *Actor) takeInventory(ctx context.Context, key events.Key, e effect.TakeInventory) ([]events.Event, error) {
	if e.Job != "" {
		j, err := a.getJob(ctx, key, e.Job)
		if err != nil {
			return a.refused(e, events.NoSerial, err)
		}
		if j != nil && (a.needsNoList(j) || !a.claim.Matches(j)) {
			a.jobs.saw(j)
			p := events.ProjectJob(j, a.claim)
			return []events.Event{events.JobListed{ID: e.ID, Name: p.Name, Job: &p, JobsVersion: p.Version}}, nil
		}
	}
	r, err := a.inventory.ask(ctx, key)
	if err == nil {
		err = r.Hidden(cluster.IdentityOfKey(key))
	}
	if err != nil {
		return a.refused(e, events.NoSerial, err)
	}
	snapshot := r.JobListed(e.ID, cluster.IdentityOfKey(key))
	if snapshot.Name == "" {
		snapshot.Name = e.Job
	}
	return []events.Event{snapshot}, nil
}

// takeScheduleInventory answers with a snapshot of the ScheduledJob. If the kind itself is gone, so is the ScheduledJob.
func (a *Actor) takeScheduleInventory(ctx context.Context, key events.Key, e effect.TakeInventory) ([]events.Event, error) {
	if a.schedules == nil {
		return nil, noSchedules(e)
	}
	r, err := a.scheduleInventory.ask(ctx, key)
	if err == nil && r.Unlisted != nil && !cluster.Unserved(r.Unlisted) {
		err = r.Unlisted
	}
	if err != nil {
		return a.refused(e, events.NoSerial, err)
	}
	snapshot := r.ScheduleListed(e.ID, cluster.IdentityOfKey(key))
	if snapshot.Name == "" {
		snapshot.Name = e.Job
	}
	return []events.Event{snapshot}, nil
}

// takeOverTime is how long after this Actor was made Kubernetes' own controller may still have begun a Job: clocks differ.
const takeOverTime = time.Minute

// needsNoList reports whether the Job is untouched, and Kubernetes' own controller cannot have begun it: that one writes the status
// only after it has created the first Pods, and names them at random.
func (a *Actor) needsNoList(j *batchv1.Job) bool {
	named := j.Spec.ManagedBy != nil && *j.Spec.ManagedBy == a.claim.ManagedBy
	return events.ProjectJob(j, a.claim).Untouched() && (named || j.CreationTimestamp.After(a.made.Add(takeOverTime)))
}

// inventories has one for each namespace to which the program is limited, or one for all under "".
type inventories map[string]*inventory

func newInventories(namespaces []string, l cluster.Lister, w func(asked func(cluster.Identity) bool) cluster.Wants) inventories {
	i := inventories{}
	for _, l.Namespace = range cluster.NamespacesOrAll(namespaces) {
		i[l.Namespace] = &inventory{Lister: l, wants: w}
	}
	return i
}

// ask waits for lists of the key's namespace that begin after now.
func (i inventories) ask(ctx context.Context, key events.Key) (*round, error) {
	for _, namespace := range []string{"", key.Namespace} {
		if one := i[namespace]; one != nil {
			return one.ask(ctx, cluster.IdentityOfKey(key))
		}
	}
	return nil, fmt.Errorf("take inventory: namespace %s is not one of this program's: all programs need the same namespaces", key.Namespace)
}

// inventory shares lists among all callers: a list by label makes the API server look at every Pod, so nothing may cost one list
// per Job.
//
//	ask ask ask          ask ask
//	   \ | /                \ |
//	 [ round 1: lists ]  [ round 2: lists ]     a caller during a round's lists waits for the next round, whose lists begin later
//
// Jobs and ScheduledJobs have one each: neither fails or waits because of a list that only the other needs.
type inventory struct {
	cluster.Lister
	// wants returns what to list for the given objects.
	wants func(asked func(cluster.Identity) bool) cluster.Wants

	mu   sync.Mutex
	next *round // collects callers; nil while there are none
	busy bool
}

// round is one set of lists and the callers that wait for it.
type round struct {
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int
	asked   map[cluster.Identity]struct{}

	done chan struct{} // closed when the fields below are set
	err  error
	cluster.Lists
}

// ask waits for lists that begin after now.
func (i *inventory) ask(ctx context.Context, of cluster.Identity) (*round, error) {
	r := i.join(of)
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		i.leave(r)
		return nil, ctx.Err()
	}
}

func (i *inventory) join(of cluster.Identity) *round {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.next == nil {
		r := &round{asked: map[cluster.Identity]struct{}{}, done: make(chan struct{})}
		// It lives as long as any caller waits for it, not only the first.
		r.ctx, r.cancel = context.WithTimeout(context.Background(), inventoryTimeout)
		i.next = r
	}
	r := i.next
	r.asked[of] = struct{}{}
	r.waiting++
	if !i.busy {
		i.busy = true
		go i.run()
	}
	return r
}

func (i *inventory) leave(r *round) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.waiting--; r.waiting > 0 {
		return
	}
	r.cancel()
	if i.next == r {
		i.next = nil
	}
}

// within returns the Lister of the round: if only one namespace asks, it lists that one alone. A user who creates Pods of Jobs
// that do not exist causes endless lists, but only of that user's namespace.
func (i *inventory) within(r *round) cluster.Lister {
	l, asked := i.Lister, map[string]struct{}{}
	for of := range r.asked {
		asked[of.Namespace] = struct{}{}
	}
	if len(asked) == 1 {
		for namespace := range asked {
			l.Namespace = namespace
		}
	}
	return l
}

// run does rounds for as long as callers wait.
func (i *inventory) run() {
	for {
		i.mu.Lock()
		r := i.next
		i.next = nil
		if r == nil {
			i.busy = false
			i.mu.Unlock()
			return
		}
		i.mu.Unlock()
		r.Lists, r.err = i.within(r).List(r.ctx, i.wants(func(of cluster.Identity) bool { _, asked := r.asked[of]; return asked }))
		if r.err != nil {
			r.err = fmt.Errorf("take inventory: %w", r.err)
		}
		r.cancel()
		close(r.done)
	}
}
