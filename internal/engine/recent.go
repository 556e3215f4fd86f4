package engine

import (
	"container/list"
	"context"
	"sync"

	"github.com/jobstream/jobstream/events"
)

// Recent is a Store that remembers the states which this process saved last, so that a turn of a key need not ask the bus for what the
// process wrote itself. Save compares with the bus as before, so a state that another reconciler has overwritten costs a conflict, after which
// Load asks the bus.
//
// A turn that changes nothing meets no conflict: it acknowledges facts that tell the remembered state nothing. That is safe for an
// observation, which tells a state nothing only if the state knows as much: another reconciler's newer state either follows from the
// remembered one, or took its inventory after it, and so knows as much, too. It is not safe for any other fact: a timer is meant for the newer state, and that
// a Pod is gone tells nothing to a state that has never heard of the Pod. NewTurn forgets the remembered state for these (see
// needsNewest).
//
// It is safe for use by several goroutines.
type Recent struct {
	store Store
	most  int

	mu      sync.Mutex
	size    int
	entries map[events.Key]*list.Element
	order   *list.List // of remembered; the one that was used last is in front
	// epochs counts for each partition how often it was taken or released. A state that was saved in another epoch is not remembered.
	epochs [events.Partitions]int
}

// recentBytes is how much a process remembers of each function: the states of 5,000 small Jobs, or those of Jobs with 40,000 Pods under
// way.
const recentBytes = 8 << 20

// remembered is a state as it was saved, or without data one that was dropped.
type remembered struct {
	key      events.Key
	data     []byte
	revision uint64
}

// size is about what a remembered state takes, with its place in the map and the list.
func (r remembered) size() int { return len(r.data) + len(r.key.Namespace) + len(r.key.UID) + 256 }

// NewRecent returns a Recent in front of the store.
func NewRecent(s Store) *Recent {
	return &Recent{store: s, most: recentBytes, entries: map[events.Key]*list.Element{}, order: list.New()}
}

// Load returns the remembered state, otherwise that of the bus.
func (r *Recent) Load(ctx context.Context, key events.Key) ([]byte, uint64, error) {
	if data, revision := r.Remembered(key); revision > 0 {
		return data, revision, nil
	}
	return r.store.Load(ctx, key)
}

// Remembered returns the remembered state and its revision; nil and 0 if there is none.
func (r *Recent) Remembered(key events.Key) ([]byte, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[key]
	if !ok || e.Value.(remembered).data == nil {
		return nil, 0
	}
	r.order.MoveToFront(e)
	m := e.Value.(remembered)
	return m.data, m.revision
}

// Save saves the state on the bus and remembers it.
func (r *Recent) Save(ctx context.Context, key events.Key, data []byte, revision uint64, rests bool) (uint64, error) {
	r.mu.Lock()
	epoch := r.epochs[key.Partition()]
	r.mu.Unlock()
	saved, err := r.store.Save(ctx, key, data, revision, rests)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[key]; ok && err == nil && e.Value.(remembered).revision > saved {
		return saved, nil // this answer was overtaken: the fold of facts beside the turn has saved a newer state
	}
	r.remove(key)
	if err == nil && r.epochs[key.Partition()] == epoch {
		r.put(remembered{key, data, saved})
	}
	return saved, err
}

// Forget deletes the state, on the bus, too.
func (r *Recent) Forget(ctx context.Context, key events.Key) error {
	r.Drop(key)
	return r.store.Forget(ctx, key)
}

// Drop makes the next Load of the key ask the bus. The revision stays, so that a late answer to an earlier Save is told from a new one.
func (r *Recent) Drop(key events.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[key]; ok {
		revision := e.Value.(remembered).revision
		r.remove(key)
		r.put(remembered{key: key, revision: revision})
	}
}

// DropPartition makes the next Load of all keys of the partition ask the bus: it was taken, or released.
func (r *Recent) DropPartition(partition int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.epochs[partition]++
	for key := range r.entries {
		if key.Partition() == partition {
			r.remove(key)
		}
	}
}

func (r *Recent) put(m remembered) {
	r.entries[m.key] = r.order.PushFront(m)
	for r.size += m.size(); r.size > r.most; {
		r.remove(r.order.Back().Value.(remembered).key)
	}
}

func (r *Recent) remove(key events.Key) {
	if e, ok := r.entries[key]; ok {
		r.size -= r.order.Remove(e).(remembered).size()
		delete(r.entries, key)
	}
}

// needsNewest reports whether a fact may tell something to a newer state that it does not tell to the remembered one. A timer was set by the newest
// state, a snapshot has to find out what is lost, also on the bus, a due notice comes once, and the end of an object means nothing to a
// state that does not know it. All others are observations.
func needsNewest(e events.Event) bool {
	switch e.(type) {
	case events.JobObserved, events.PodObserved, events.ScheduledJobObserved, events.RunObserved:
		return false
	}
	return true
}
