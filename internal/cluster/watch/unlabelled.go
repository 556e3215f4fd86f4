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

// unlabelled are the watches of Pods that carry no mark of ours: one for each namespace that has a adoptingJob, for as long as
// it has one. What is remembered is the selectors of these Jobs.
type unlabelled struct {
	mu           sync.Mutex
	adoptingJobs cluster.AdoptingJobs
	watches      map[string]context.CancelFunc
	open         func(namespace string) context.CancelFunc
	// left are the namespaces that the last complete list has left out: it could not list their unmarked Pods.
	left map[string]error
}

// begin starts with these adoptingJobs; whatever was watched before has ended. open starts the watch of a namespace.
func (s *unlabelled) begin(c cluster.AdoptingJobs, open func(namespace string) context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adoptingJobs, s.open, s.watches = c, open, map[string]context.CancelFunc{}
	for namespace := range c {
		s.watches[namespace] = open(namespace)
	}
}

// saw keeps the watches up with the Job. It has to be called before anybody else hears of the Job: an inventory that is
// taken for it shows what the watch of its namespace had shown before.
func (s *unlabelled) saw(j events.Job) { s.change(j.Namespace, func() { s.adoptingJobs.Put(j) }) }

// missed does the same with a Job that is gone.
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

// leftOut notes what a complete list has left out.
func (s *unlabelled) leftOut(namespaces map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = namespaces
}

// made says that the unmarked Pods of the namespace have been listed, and answers whether those who may adopt them still miss
// their snapshots.
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

// watchUnlabelled begins a session's watches of the namespaces that have adoptingJobs. Each belongs to the group, and ends the session
// only where the sink fails: a namespace that we may not see concerns its own Jobs.
func (w *Watcher) watchUnlabelled(ctx context.Context, g *errgroup.Group, c cluster.AdoptingJobs) {
	w.unlabelled.begin(c, func(namespace string) context.CancelFunc {
		mine, stop := context.WithCancel(ctx)
		g.Go(func() error {
			defer stop()
			if err := w.followUnlabelled(mine, namespace); mine.Err() == nil || ctx.Err() != nil {
				return err
			}
			return nil // the last adoptingJob has gone
		})
		return stop
	})
}

// followUnlabelled tells of all unmarked Pods of the namespace that concern a adoptingJob, and then of what becomes of them. Where that
// cannot go on, it begins again by itself, for as long as it takes.
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
