package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/bench/report"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

const (
	// creators is how many Jobs are created at once.
	creators = 32
	// pause is how long nothing happens between two Jobs that run in turn: what is left of one is over before the next begins.
	pause = 200 * time.Millisecond
)

// life is what the watches have shown of a Job. Zero: not yet.
type life struct {
	made            time.Time // when the benchmark began to create it, or when its schedule was due
	job, pod, ended time.Time
}

func toJob(l life) time.Duration { return l.job.Sub(l.made) }
func toPod(l life) time.Duration { return l.pod.Sub(l.made) }
func toEnd(l life) time.Duration { return l.ended.Sub(l.made) }

// load is what has become of a workload's Jobs.
type load struct {
	pods int
	jobs []life
}

// took is the time from the first creation to the last end.
func (l load) took() time.Duration {
	first, last := l.jobs[0].made, l.jobs[0].ended
	for _, j := range l.jobs {
		if j.made.Before(first) {
			first = j.made
		}
		if j.ended.After(last) {
			last = j.ended
		}
	}
	return last.Sub(first)
}

// each returns a time of each Job, sorted.
func (l load) each(of func(life) time.Duration) (all []time.Duration) {
	for _, j := range l.jobs {
		all = append(all, of(j))
	}
	report.Sort(all)
	return all
}

// observer keeps what the watches of a namespace show.
type observer struct {
	mu      sync.Mutex
	lives   map[string]*life
	due     time.Time // the time of all Jobs, if a schedule makes them
	pods    bool      // whether Pods are watched
	over    int       // Jobs that have ended and, if Pods are watched, whose Pod was observed
	changed chan struct{}
}

// observe watches the Jobs of a namespace, and the metadata of its Pods if that is asked for, until ctx ends; due is as in observer.
// It returns when the watches are established.
func observe(ctx context.Context, s *harness.System, namespace string, pods bool, due time.Time) (*observer, error) {
	o := &observer{lives: map[string]*life{}, due: due, pods: pods, changed: make(chan struct{}, 1)}
	jobs := s.Client.BatchV1().Jobs(namespace)
	err := bulk.See(ctx, &batchv1.Job{}, o.seeJob, &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, l metav1.ListOptions) (runtime.Object, error) { return jobs.List(ctx, l) },
		WatchFuncWithContext: func(ctx context.Context, l metav1.ListOptions) (watch.Interface, error) { return jobs.Watch(ctx, l) },
	})
	if err != nil || !pods {
		return o, err
	}
	m, err := metadata.NewForConfig(s.REST)
	if err != nil {
		return nil, err
	}
	all := m.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	return o, bulk.See(ctx, &metav1.PartialObjectMetadata{}, o.seePod, &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, l metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, l) },
		WatchFuncWithContext: func(ctx context.Context, l metav1.ListOptions) (watch.Interface, error) { return all.Watch(ctx, l) },
	})
}

// of returns the Job's life; the caller holds mu.
func (o *observer) of(job string) *life {
	if o.lives[job] == nil {
		o.lives[job] = &life{made: o.due}
	}
	return o.lives[job]
}

func (o *observer) seeJob(object any) {
	j, ok := object.(*batchv1.Job)
	if !ok {
		return
	}
	now := time.Now()
	o.note(j.Name, now, func(l *life) *time.Time { return &l.job })
	if harness.Is(j, batchv1.JobComplete) || harness.Is(j, batchv1.JobFailed) {
		o.note(j.Name, now, func(l *life) *time.Time { return &l.ended })
	}
}

func (o *observer) seePod(object any) {
	if p, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.note(p.Labels[batchv1.JobNameLabel], time.Now(), func(l *life) *time.Time { return &l.pod })
	}
}

// note keeps the first time.
func (o *observer) note(job string, now time.Time, what func(*life) *time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.of(job)
	if at := what(l); at.IsZero() {
		*at = now
		if !l.ended.IsZero() && (!o.pods || !l.pod.IsZero()) {
			o.over++
		}
	}
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// create creates Jobs, some at a time, and notes when it began with each.
func (o *observer) create(ctx context.Context, s *harness.System, namespace string, jobs []*batchv1.Job) error {
	next, failed := make(chan *batchv1.Job), make(chan error, creators)
	var all sync.WaitGroup
	for range min(creators, len(jobs)) {
		all.Go(func() {
			for j := range next {
				o.mu.Lock()
				o.of(j.Name).made = time.Now()
				o.mu.Unlock()
				if _, err := s.Client.BatchV1().Jobs(namespace).Create(ctx, j, metav1.CreateOptions{}); err != nil {
					failed <- fmt.Errorf("create Job %s: %w", j.Name, err)
					return
				}
			}
		})
	}
	err := hand(jobs, next, failed)
	close(next)
	all.Wait()
	return err
}

// hand gives each Job to a creator that is free, until one has failed.
func hand(jobs []*batchv1.Job, next chan<- *batchv1.Job, failed <-chan error) error {
	for _, j := range jobs {
		select {
		case next <- j:
		case err := <-failed:
			return err
		}
	}
	return nil
}

// errLate is the end of a side's time.
var errLate = errors.New("not within the time")

// wait waits until so many Jobs are over, while all parts of the system live.
func (o *observer) wait(ctx context.Context, jobs int, broken func() error) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		o.mu.Lock()
		over := o.over
		o.mu.Unlock()
		if over >= jobs {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d Jobs had ended", over, jobs)
		case <-o.changed:
		case <-look.C:
			if err := broken(); err != nil {
				return err
			}
		}
	}
}

// seen returns the lives of all Jobs.
func (o *observer) seen() (all []life) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lives {
		all = append(all, *l)
	}
	return all
}
