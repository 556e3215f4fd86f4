package processnode

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// departedLimit is the number of remembered UIDs of deleted Pods, so that a late observation from a lagging API server does not
// run one again.
const departedLimit = 16_384

// pods are the Pods bound to the node, by UID. It receives the watch of them.
type pods struct {
	node  string
	fresh func(*v1.Pod) *pod // a pod that has not been run
	over  func(types.UID)    // called when nothing is left of the Pod
	ctx   context.Context    // of the goroutines
	work  sync.WaitGroup

	mu       sync.Mutex
	byUID    map[types.UID]*entry
	byName   map[types.NamespacedName]types.UID
	departed map[types.UID]bool
	order    []types.UID // of the departed
	// orphaned reports whether the node had a former run: unfinished Pods in the first list may have been started by it.
	orphaned bool
	synced   chan struct{} // closed after the first list
	once     sync.Once
}

type entry struct {
	pod      *pod
	finished bool // reported to the end; only its removal is left
}

// observation records the newest state of a Pod, and runs it if it is new.
func (s *pods) observation(object *v1.Pod) { s.see(object, false) }

func (s *pods) see(object *v1.Pod, orphan bool) {
	if object.Spec.NodeName != s.node {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byUID[object.UID]
	switch {
	case s.departed[object.UID]:
		return
	case e == nil:
		e = &entry{pod: s.fresh(object), finished: terminal(object)}
		s.byUID[object.UID] = e
		s.byName[e.pod.name] = object.UID
		if e.finished {
			e.pod.clear()
			break
		}
		if orphan {
			e.pod.orphan(time.Now())
		}
		s.work.Go(func() {
			e.pod.run(s.ctx)
			s.finish(e)
		})
		return
	case !e.finished:
		e.pod.post(func(in *inbox) {
			if version(object) >= version(in.object) {
				in.object = object
			}
		})
		return
	}
	if asksForRemoval(object) && s.ctx.Err() == nil {
		s.work.Go(func() { e.pod.removeIfDeleted(s.ctx, object) })
	}
}

// finish keeps only what a late deletion of an ended Pod needs.
func (s *pods) finish(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.finished = true
	last := e.pod.object
	late := e.pod.newest(last)
	e.pod.clear()
	if _, there := s.byUID[e.pod.uid]; !there {
		s.work.Go(func() { s.over(e.pod.uid) }) // its object went first
		return
	}
	if late != last && asksForRemoval(late) && s.ctx.Err() == nil {
		s.work.Go(func() { e.pod.removeIfDeleted(s.ctx, late) })
	}
}

// gone records that the object was deleted: running processes of it are killed.
func (s *pods) gone(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byUID[uid]
	if e == nil {
		return
	}
	delete(s.byUID, uid)
	if s.byName[e.pod.name] == uid {
		delete(s.byName, e.pod.name)
	}
	s.departed[uid] = true
	if s.order = append(s.order, uid); len(s.order) > departedLimit {
		delete(s.departed, s.order[0])
		s.order = s.order[1:]
	}
	if e.finished {
		s.work.Go(func() { s.over(uid) })
		return
	}
	e.pod.post(func(in *inbox) { in.gone = true })
}

// replace records the content of a complete list.
func (s *pods) replace(list []*v1.Pod) {
	there := map[types.UID]bool{}
	for _, object := range list {
		there[object.UID] = true
		s.see(object, s.orphaned)
	}
	s.mu.Lock()
	s.orphaned = false
	var missing []types.UID
	for uid := range s.byUID {
		if !there[uid] {
			missing = append(missing, uid)
		}
	}
	s.mu.Unlock()
	for _, uid := range missing {
		s.gone(uid)
	}
	s.once.Do(func() { close(s.synced) })
}

func (s *pods) known(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byUID[uid] != nil
}

// find returns the UID of the Pod with the name.
func (s *pods) find(namespace, name string) (types.UID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uid, ok := s.byName[types.NamespacedName{Namespace: namespace, Name: name}]
	if !ok {
		return "", fmt.Errorf("pod %s/%s is not on node %s", namespace, name, s.node)
	}
	return uid, nil
}

func terminal(object *v1.Pod) bool {
	return object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed
}
