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

// unlabelled is the set of watches of Pods without the managed label: one for each namespace with an adopting Job, for as long as
// it has one. It keeps the selectors of these Jobs.
type unlabelled struct {
	mu           sync.Mutex
	adoptingJobs cluster.AdoptingJobs
	watches      map[string]context.CancelFunc
	open         func(namespace string) context.CancelFunc
	// left are the namespaces that the last complete list omitted: it could not list their unmarked Pods.
	left map[string]error
}

// begin starts with these adopting Jobs, after all earlier watches have ended. open starts the watch of a namespace.
func (s *unlabelled) begin(c cluster.AdoptingJobs, open func(namespace string) context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adoptingJobs, s.open, s.watches = c, open, map[string]context.CancelFunc{}
	for namespace := range c {
		s.watches[namespace] = open(namespace)
	}
}

// saw updates the watches for the Job. It has to be called before the Job is published: an inventory that is taken for it must
// show what the watch of its namespace had shown before.
func (s *unlabelled) saw(j events.Job) { s.change(j.Namespace, func() { s.adoptingJobs.Put(j) }) }

// missed updates the watches for a Job that is gone.
func (s *unlabelled) missed(namespace string, uid types.UID) {
	s.change(namespace, func() { s.adoptingJobs.Remove(namespace, uid) })
}

func (s *unlabelled) change(namespace string, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	stop, watched := s.watches[namespace]
	switch wanted := len(s.adoptingJobs[namespace]) > 0; {
	case wanted && !watched:
		s.watches[namespace] = s.open(namespace)
	case !wanted && watched:
		stop()
		delete(s.watches, namespace)
	}
}

// leftOut records the namespaces that a complete list omitted.
func (s *unlabelled) leftOut(namespaces map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = namespaces
}

// made records that the unmarked Pods of the namespace have been listed, and reports whether the Jobs that may adopt them still
// lack their snapshots.
func (s *unlabelled) made(namespace string) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed = s.left[namespace] != nil
	delete(s.left, namespace)
	return missed
}

func (s *unlabelled) of(p *corev1.Pod) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adoptingJobs.Of(p)
}

func (s *unlabelled) recipients(p *corev1.Pod) []types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adoptingJobs.Recipients(p)
}

// watchUnlabelled begins a session's watches of the namespaces that have adopting Jobs. Each belongs to the group, and ends the
// session only if the sink fails: a namespace that the API server denies concerns its own Jobs only.
func (w *Watcher) watchUnlabelled(ctx context.Context, g *errgroup.Group, c cluster.AdoptingJobs) {
	w.unlabelled.begin(c, func(namespace string) context.CancelFunc {
		mine, stop := context.WithCancel(ctx)
		g.Go(func() error {
			defer stop()
			if err := w.followUnlabelled(mine, namespace); mine.Err() == nil || ctx.Err() != nil {
				return err
			}
			return nil // the last adopting Job is gone
		})
		return stop
	})
}

// followUnlabelled publishes all unmarked Pods of the namespace that concern an adopting Job, and then what becomes of them. If
// that cannot continue, it begins again separately, for as long as it takes.
func (w *Watcher) followUnlabelled(ctx context.Context, namespace string) error {
	retry := w.retry("watch unmarked Pods of " + namespace)
	defer retry.forget()
	for {
		err := w.followUnlabelledOnce(ctx, namespace, retry.over)
		if isSink(err) || ctx.Err() != nil {
			return err
		}
		if !cluster.Expired(err) {
			retry.begins(err)
		}
		if err := retry.wait(ctx, nil); err != nil {
			return err
		}
	}
}

func (w *Watcher) followUnlabelledOnce(ctx context.Context, namespace string, works func()) error {
	pods, selector := w.config.Client.CoreV1().Pods(namespace), cluster.UnmarkedPods(w.config.Claim)
	version, err := cluster.Pages(ctx, pods.List, selector, func(page *corev1.PodList) error {
		for i := range page.Items {
			if err := w.onUnlabelled(ctx, watch.Added, &page.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	works()
	if w.unlabelled.made(namespace) {
		w.Relist()
	}
	return w.follow(ctx, "unmarked Pods of "+namespace, version, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = selector
		return pods.Watch(ctx, o)
	}, w.onUnlabelled)
}
