package act

import (
	"container/list"
	"time"

	"github.com/jobstream/jobstream/internal/cluster"
)

// shelves keep what was used last, and no more than a limit of weight: a shelf for each namespace. When there is too much, what no
// worker has used for ten minutes goes first; then the heaviest shelf loses what was used there longest ago. So a user who fills one
// namespace with many or large objects has those read again and again, and those of no namespace that takes less.
//
//	limit 10    a: 2 2 2     the next 2 of b:     a:   2 2
//	            b: 2 1                            b: 2 2 1
type shelves[E any] struct {
	limit, weight int
	placed        map[cluster.Identity]*placed[E]
	byNamespace   map[string]*shelf
	byUse         list.List // of *placed[E], the one used last in front
}

type shelf struct {
	weight int
	byUse  list.List // the same of one namespace
}

// idleTime is how long an entry keeps its place that no worker uses. A Job is written at least as often while its Pods come and go.
const idleTime = 10 * time.Minute

type placed[E any] struct {
	entry     *E
	of        cluster.Identity
	weight    int
	used      time.Time
	all, here *list.Element // its places in the two lists
}

func newShelves[E any](limit int) shelves[E] {
	return shelves[E]{limit: limit, placed: map[cluster.Identity]*placed[E]{}, byNamespace: map[string]*shelf{}}
}

// get returns the entry, and uses it; nil if there is none.
func (s *shelves[E]) get(of cluster.Identity, now time.Time) *E {
	p := s.placed[of]
	if p == nil {
		return nil
	}
	p.used = now
	s.byUse.MoveToFront(p.all)
	s.byNamespace[of.Namespace].byUse.MoveToFront(p.here)
	return p.entry
}

// put places the entry instead of the one that is there, if any. If it is too heavy for the rest to make room, it is not there afterwards.
func (s *shelves[E]) put(of cluster.Identity, e *E, weight int, now time.Time) {
	s.remove(of)
	in := s.byNamespace[of.Namespace]
	if in == nil {
		in = &shelf{}
		s.byNamespace[of.Namespace] = in
	}
	p := &placed[E]{entry: e, of: of, weight: weight, used: now}
	p.all, p.here = s.byUse.PushFront(p), in.byUse.PushFront(p)
	s.placed[of] = p
	in.weight += weight
	s.weight += weight
	for s.weight > s.limit {
		s.remove(s.dispensable(now))
	}
}

func (s *shelves[E]) remove(of cluster.Identity) {
	p := s.placed[of]
	if p == nil {
		return
	}
	in := s.byNamespace[of.Namespace]
	s.byUse.Remove(p.all)
	in.byUse.Remove(p.here)
	delete(s.placed, of)
	in.weight -= p.weight
	s.weight -= p.weight
	if in.byUse.Len() == 0 {
		delete(s.byNamespace, of.Namespace)
	}
}

// dispensable returns what goes first. It looks at each namespace, which takes microseconds for hundreds of them: what is placed has
// cost a request, or is about to.
func (s *shelves[E]) dispensable(now time.Time) cluster.Identity {
	if oldest := s.byUse.Back().Value.(*placed[E]); now.Sub(oldest.used) >= idleTime {
		return oldest.of
	}
	var heaviest *shelf
	for _, in := range s.byNamespace {
		if heaviest == nil || in.weight > heaviest.weight {
			heaviest = in
		}
	}
	return heaviest.byUse.Back().Value.(*placed[E]).of
}
