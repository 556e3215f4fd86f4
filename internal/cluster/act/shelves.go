package act

import (
	"k8s.io/utils/lru"

	"github.com/jobstream/jobstream/internal/cluster"
)

// shelves keep what was used last, and no more than a limit of weight: a shelf for each namespace. When there is too much, the
// heaviest shelf loses what was used there longest ago. So a user who fills one namespace with many or large objects has those read
// again and again, and no others.
//
//	limit 9    a: 1 2 2      the next 2 of b:      a:   2 2
//	           b: 2 1                              b: 2 1 2
type shelves[E any] struct {
	limit, weight int
	byNamespace   map[string]*shelf[E]
}

type shelf[E any] struct {
	weight int
	placed *lru.Cache // types.UID -> *placed[E]
}

type placed[E any] struct {
	entry  *E
	weight int
}

func newShelves[E any](limit int) shelves[E] {
	return shelves[E]{limit: limit, byNamespace: map[string]*shelf[E]{}}
}

// get returns the entry, and uses it; nil if there is none.
func (s *shelves[E]) get(of cluster.Identity) *E {
	if in := s.byNamespace[of.Namespace]; in != nil {
		if p, ok := in.placed.Get(of.UID); ok {
			return p.(*placed[E]).entry
		}
	}
	return nil
}

// put places the entry instead of the one that is there, if any.
func (s *shelves[E]) put(of cluster.Identity, e *E, weight int) {
	in := s.byNamespace[of.Namespace]
	if in == nil {
		in = &shelf[E]{}
		in.placed = lru.NewWithEvictionFunc(0, func(_ lru.Key, gone any) { s.add(in, -gone.(*placed[E]).weight) })
		s.byNamespace[of.Namespace] = in
	}
	in.placed.Remove(of.UID)
	in.placed.Add(of.UID, &placed[E]{e, weight})
	s.add(in, weight)
	for s.weight > s.limit {
		s.shed()
	}
}

func (s *shelves[E]) remove(of cluster.Identity) {
	if in := s.byNamespace[of.Namespace]; in != nil {
		in.placed.Remove(of.UID)
		s.drop(of.Namespace)
	}
}

func (s *shelves[E]) add(in *shelf[E], weight int) {
	in.weight += weight
	s.weight += weight
}

// shed removes an entry. It looks at every namespace, which takes microseconds for hundreds: what was placed has cost a request.
func (s *shelves[E]) shed() {
	var heaviest string
	most := -1
	for namespace, in := range s.byNamespace {
		if in.weight > most {
			heaviest, most = namespace, in.weight
		}
	}
	s.byNamespace[heaviest].placed.RemoveOldest()
	s.drop(heaviest)
}

// drop drops the shelf if it is empty.
func (s *shelves[E]) drop(namespace string) {
	if s.byNamespace[namespace].placed.Len() == 0 {
		delete(s.byNamespace, namespace)
	}
}
