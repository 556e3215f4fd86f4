package processnode

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// slots bounds how many Pods do something at once: run, or write to the API server. The slot to run is held by a Pod's
// UID from before it is bound until its containers have ended, so that a Pod is never bound to a node without room.
type slots struct {
	mu      sync.Mutex
	free    int
	held    map[types.UID]time.Time
	waiters []waiter // first come, first served
}

type waiter struct {
	uid   types.UID
	asker asker
	wake  func()
}

// asker is the waiting part of the node. Each waits once.
type asker int

const (
	askedByBinder asker = iota
	askedByPod
)

func newSlots(n int) *slots { return &slots{free: n, held: map[types.UID]time.Time{}} }

// take takes a slot for the Pod and reports whether it did. If none is free, it calls wake as soon as the Pod holds one.
func (s *slots) take(uid types.UID, by asker, wake func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[uid]; ok {
		return true
	}
	if s.free > 0 {
		s.free--
		s.held[uid] = time.Now()
		return true
	}
	if !slices.ContainsFunc(s.waiters, func(w waiter) bool { return w.uid == uid && w.asker == by }) {
		s.waiters = append(s.waiters, waiter{uid, by, wake})
	}
	return false
}

// give releases the Pod's slot, or its place in the queue. It is harmless without either.
func (s *slots) give(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.held[uid]; !ok {
		s.waiters = slices.DeleteFunc(s.waiters, func(w waiter) bool { return w.uid == uid })
		return
	}
	delete(s.held, uid)
	s.free++
	for s.free > 0 && len(s.waiters) > 0 {
		w := s.waiters[0]
		s.waiters = s.waiters[1:]
		if _, ok := s.held[w.uid]; !ok {
			s.free--
			s.held[w.uid] = time.Now()
		}
		go w.wake() // not under the lock
	}
}

// waiting returns the number of waiters.
func (s *slots) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiters)
}

// stale lists the holders of old slots that the node does not know: Pods that were bound and never arrived.
func (s *slots) stale(before time.Time, known func(types.UID) bool) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []types.UID
	for uid, since := range s.held {
		if since.Before(before) && !known(uid) {
			out = append(out, uid)
		}
	}
	return out
}
