package processnode

import (
	"context"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// bindWorkers is the number of concurrent bindings: enough to hide the API server's latency, too few to crowd out its other
	// clients.
	bindWorkers = 8
	// bindRetry is the wait after the API server could not be reached.
	bindRetry = time.Second
)

// binder is the smallest scheduler: the oldest Pod without a node comes here as soon as there is a free slot.
type binder struct {
	client kubernetes.Interface
	node   string
	labels map[string]string
	slots  *slots
	log    *slog.Logger

	mu      sync.Mutex
	more    *sync.Cond
	pending map[types.UID]*v1.Pod
	queue   []types.UID // may name Pods that are no longer pending
	closed  bool
}

func newBinder(client kubernetes.Interface, node string, labels map[string]string, s *slots, log *slog.Logger) *binder {
	b := &binder{client: client, node: node, labels: labels, slots: s, log: log, pending: map[types.UID]*v1.Pod{}}
	b.more = sync.NewCond(&b.mu)
	return b
}

// wants reports whether the Pod waits for the default scheduler and may run here.
func (b *binder) wants(p *v1.Pod) bool {
	if p.Spec.NodeName != "" || p.Spec.SchedulerName != v1.DefaultSchedulerName || p.DeletionTimestamp != nil ||
		len(p.Spec.SchedulingGates) > 0 || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
		return false
	}
	for k, want := range p.Spec.NodeSelector {
		if have, ok := b.labels[k]; !ok || have != want {
			return false
		}
	}
	return true
}

// observation notes a Pod without a node.
func (b *binder) observation(p *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.wants(p) {
		delete(b.pending, p.UID)
		return
	}
	if _, known := b.pending[p.UID]; !known {
		b.queue = append(b.queue, p.UID)
		b.more.Signal()
	}
	b.pending[p.UID] = p
}

// gone records that a Pod has a node now, or no longer exists.
func (b *binder) gone(p *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, p.UID)
}

// replace records the content of a complete list.
func (b *binder) replace(list []*v1.Pod) {
	b.mu.Lock()
	b.pending, b.queue = map[types.UID]*v1.Pod{}, nil
	b.mu.Unlock()
	for _, p := range list {
		b.observation(p)
	}
}

// next returns the Pod that has waited longest, and waits for one if necessary; nil means that the node is stopping.
func (b *binder) next() *v1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for len(b.queue) > 0 {
			uid := b.queue[0]
			b.queue = b.queue[1:]
			if p := b.pending[uid]; p != nil {
				return p
			}
		}
		if b.closed {
			return nil
		}
		b.more.Wait()
	}
}

func (b *binder) stillPending(uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending[uid] != nil
}

// run binds until ctx ends.
func (b *binder) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.closed, b.queue = true, nil
		b.more.Broadcast()
	})
	defer stop()
	var workers sync.WaitGroup
	for range bindWorkers {
		workers.Go(func() {
			for p := b.next(); p != nil; p = b.next() {
				b.bind(ctx, p)
			}
		})
	}
	workers.Wait()
	return nil
}

func (b *binder) bind(ctx context.Context, p *v1.Pod) {
	granted := make(chan struct{})
	if !b.slots.take(p.UID, askedByBinder, func() { close(granted) }) {
		select {
		case <-granted:
		case <-ctx.Done():
			b.slots.give(p.UID)
			return
		}
	}
	if !b.stillPending(p.UID) {
		b.slots.give(p.UID)
		return
	}
	err := b.client.CoreV1().Pods(p.Namespace).Bind(ctx, &v1.Binding{
		// The UID prevents the binding of a new Pod with the same name, which must be checked first.
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: b.node},
	}, metav1.CreateOptions{})
	if err == nil {
		return // the watch of this node's Pods delivers it
	}
	b.slots.give(p.UID)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return // bound by another client, or deleted: the watch shows either
	}
	if ctx.Err() != nil {
		return
	}
	b.log.Warn("cannot bind a pod, will try again", "pod", p.Namespace+"/"+p.Name, "err", err)
	time.AfterFunc(bindRetry, func() { b.again(p.UID) })
}

// again queues a Pod whose binding failed, unless it was deleted meanwhile. After a timeout it may be bound nevertheless: the
// next attempt is then a conflict.
func (b *binder) again(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending[uid] != nil && !b.closed {
		b.queue = append(b.queue, uid)
		b.more.Signal()
	}
}
