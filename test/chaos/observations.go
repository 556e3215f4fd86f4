package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// life is what was stored of one Pod.
type life struct {
	name  string
	job   types.UID // of its Job
	index string
	node  string
	// counts is its phase if it ended while it was held: then it must be counted, once. "" for a Pod that lost its finalizer
	// before it ended, or never ended.
	counts corev1.PodPhase
	phase  corev1.PodPhase
	// withdrawn reports whether it was terminated while it was held, before it ended.
	withdrawn bool
	// disrupted reports whether it was lost with its node.
	disrupted bool
	gone      bool
	// stripped reports whether the built-in Job controller has removed the tracking finalizer, see checkStripped.
	stripped bool
}

// observations are all states of all Pods of the namespace, as etcd's own watch shows them. A watch of the API server would miss what
// happens between the moment in which a killed API server serves again and the return of the watch: whole Pods.
type observations struct {
	etcd *clientv3.Client
	keys string // how those of the Pods begin
	from int64  // the revision at which the watch begins

	mu    sync.Mutex
	pods  map[types.UID]life
	named map[string]types.UID // the Pods that exist, by key
	wrong []string
}

func newObservations() *observations {
	return &observations{pods: map[types.UID]life{}, named: map[string]types.UID{}}
}

// observe connects to etcd. What is stored from now on will be seen, whenever watch starts.
func observe(ctx context.Context, url, keys string) (s *observations, err error) {
	s = newObservations()
	s.keys = keys
	if s.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{url}, Context: ctx}); err != nil {
		return nil, err
	}
	now, err := s.etcd.Get(ctx, keys, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		_ = s.etcd.Close()
		return nil, fmt.Errorf("etcd: %w", err)
	}
	s.from = now.Header.Revision + 1
	return s, nil
}

// watch runs until ctx ends. Its client connects again by itself, and goes on at the next revision: no state is left out. etcd keeps
// the last five minutes, and says so if the watch is further behind.
func (s *observations) watch(ctx context.Context) {
	for answer := range s.etcd.Watch(ctx, s.keys, clientv3.WithPrefix(), clientv3.WithRev(s.from)) {
		if err := answer.Err(); err != nil && ctx.Err() == nil {
			s.add("etcd's watch: %v", err)
		}
		for _, e := range answer.Events {
			s.take(e)
		}
	}
	if ctx.Err() == nil {
		s.add("etcd's watch has ended")
	}
	_ = s.etcd.Close()
}

func (s *observations) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// take records one write of the API server.
func (s *observations) take(e *clientv3.Event) {
	key := string(e.Kv.Key)
	if e.Type == clientv3.EventTypeDelete {
		s.end(key)
		return
	}
	var p corev1.Pod
	if err := runtime.DecodeInto(scheme.Codecs.UniversalDeserializer(), e.Kv.Value, &p); err != nil {
		s.add("etcd: %s: %v", key, err)
		return
	}
	s.see(key, &p)
}

func (s *observations) see(key string, p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named[key] = p.UID
	l := s.pods[p.UID]
	l.name, l.job = p.Name, types.UID(p.Labels[batchv1.ControllerUidLabel])
	l.index, l.node, l.phase = p.Annotations[batchv1.JobCompletionIndexAnnotation], p.Spec.NodeName, p.Status.Phase
	for _, c := range p.Status.Conditions {
		l.disrupted = l.disrupted || c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	}
	held := slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
	ended := l.phase == corev1.PodSucceeded || l.phase == corev1.PodFailed
	switch {
	case ended && held:
		l.counts = l.phase
	case !ended && held && p.DeletionTimestamp != nil:
		l.withdrawn = true
	}
	s.pods[p.UID] = l
}

func (s *observations) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.pods[s.named[key]]
	l.gone = true
	s.pods[s.named[key]] = l
	delete(s.named, key)
}

// all returns what has been seen so far, and why that may be incomplete.
func (s *observations) all() (lives map[types.UID]life, wrong []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.pods), slices.Clone(s.wrong)
}
