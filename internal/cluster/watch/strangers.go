package watch

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/cluster"
)

// strangers are the watches of Pods that carry no mark of ours: one for each namespace that has a claimant, for as long as
// it has one. What is remembered is the selectors of these Jobs.
type strangers struct {
	mu        sync.Mutex
	claimants cluster.Claimants
	watches   map[string]context.CancelFunc
	open      func(namespace string) context.CancelFunc
	// left are the namespaces that the last complete list has left out: it could not list their unmarked Pods.
	left map[string]error
}

// begin starts with these claimants; whatever was watched before has ended. open starts the watch of a namespace.
func (s *strangers) begin(c cluster.Claimants, open func(namespace string) context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimants, s.open, s.watches = c, open, map[string]context.CancelFunc{}
	for namespace := range c {
		s.watches[namespace] = open(namespace)
	}
}

// saw keeps the watches up with the Job. It has to be called before anybody else hears of the Job: an inventory that is
// taken for it shows what the watch of its namespace had shown before.
func (s *strangers) saw(j events.Job) { s.change(j.Namespace, func() { s.claimants.Put(j) }) }

// missed does the same with a Job that is gone.
func (s *strangers) missed(namespace string, uid types.UID) {
	s.change(namespace, func() { s.claimants.Remove(namespace, uid) })
}

func (s *strangers) change(namespace string, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	stop, watched := s.watches[namespace]
	switch wanted := len(s.claimants[namespace]) > 0; {
	case wanted && !watched:
		s.watches[namespace] = s.open(namespace)
	case !wanted && watched:
		stop()
		delete(s.watches, namespace)
	}
}

// leftOut notes what a complete list has left out.
func (s *strangers) leftOut(namespaces map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = namespaces
}

// made says that the unmarked Pods of the namespace have been listed, and answers whether those who may adopt them still miss
// their snapshots.
func (s *strangers) made(namespace string) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed = s.left[namespace] != nil
	delete(s.left, namespace)
	return missed
}

func (s *strangers) of(p *corev1.Pod) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimants.Of(p)
}

func (s *strangers) recipients(p *corev1.Pod) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimants.Recipients(p)
}

// watchStrangers begins a session's watches of the namespaces that have claimants. Each belongs to the group, and ends the session
// only where the sink fails: a namespace that we may not see concerns its own Jobs.
func (w *Watcher) watchStrangers(ctx context.Context, g *errgroup.Group, c cluster.Claimants) {
	w.strangers.begin(c, func(namespace string) context.CancelFunc {
		mine, stop := context.WithCancel(ctx)
		g.Go(func() error {
			defer stop()
			if err := w.followStrangers(mine, namespace); mine.Err() == nil || ctx.Err() != nil {
				return err
			}
			return nil // the last claimant has gone
		})
		return stop
	})
}

// followStrangers tells of all unmarked Pods of the namespace that concern a claimant, and then of what becomes of them. Where that
// cannot go on, it begins again by itself, for as long as it takes.
func (w *Watcher) followStrangers(ctx context.Context, namespace string) error {
	trouble := w.trouble("watch unmarked Pods of " + namespace)
	defer trouble.forget()
	for {
		err := w.followStrangersOnce(ctx, namespace, trouble.over)
		if isSink(err) || ctx.Err() != nil {
			return err
		}
		if !cluster.Expired(err) {
			trouble.begins(err)
		}
		if err := trouble.wait(ctx, nil); err != nil {
			return err
		}
	}
}

func (w *Watcher) followStrangersOnce(ctx context.Context, namespace string, works func()) error {
	pods, selector := w.config.Client.CoreV1().Pods(namespace), cluster.UnmarkedPods(w.config.Claim)
	version, err := cluster.Pages(ctx, pods.List, selector, func(page *corev1.PodList) error {
		for i := range page.Items {
			if err := w.onStranger(ctx, watch.Added, &page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	works()
	if w.strangers.made(namespace) {
		w.Relist()
	}
	return w.follow(ctx, "unmarked Pods of "+namespace, version, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = selector
		return pods.Watch(ctx, o)
	}, w.onStranger)
}
