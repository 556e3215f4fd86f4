package chaos

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// life is what the API server has shown of one Pod.
type life struct {
	name  string
	job   types.UID // of its Job
	index string
	node  string
	// counts is its phase if it ended while it was held: then it must be counted, once. "" for a Pod that lost its finalizer
	// before it ended, or never ended.
	counts corev1.PodPhase
	phase  corev1.PodPhase
	held   bool
	// unsure reports whether a change of phase was missed, since the API server was away.
	unsure bool
	// withdrawn reports whether it was terminated while it was held, before it ended.
	withdrawn bool
	// disrupted reports whether it was lost with its node.
	disrupted bool
	gone      bool
	// stripped reports whether the built-in Job controller has removed the tracking finalizer, see checkStripped.
	stripped bool
}

// observations is what a watch of all Pods of the namespace has shown.
type observations struct {
	mu   sync.Mutex
	pods map[types.UID]life
}

func newObservations() *observations { return &observations{pods: map[types.UID]life{}} }

func (s *observations) see(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeOne(p)
}

func (s *observations) seeOne(p *corev1.Pod) {
	l, known := s.pods[p.UID]
	was := l
	l.name, l.job = p.Name, types.UID(p.Labels[batchv1.ControllerUidLabel])
	l.index, l.node, l.phase = p.Annotations[batchv1.JobCompletionIndexAnnotation], p.Spec.NodeName, p.Status.Phase
	l.held = slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer)
	ended := l.phase == corev1.PodSucceeded || l.phase == corev1.PodFailed
	for _, c := range p.Status.Conditions {
		l.disrupted = l.disrupted || c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	}
	switch {
	case ended && l.held:
		l.counts = l.phase
	case ended && l.counts == "" && (!known || was.held): // it lost its finalizer meanwhile, before or after it ended
		l.unsure = true
	case !ended && l.held && p.DeletionTimestamp != nil:
		l.withdrawn = true
	}
	s.pods[p.UID] = l
}

func (s *observations) end(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.pods[p.UID]
	l.gone = true
	s.pods[p.UID] = l
}

// replace takes a complete list: what is missing was deleted while the watch was off.
func (s *observations) replace(list []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[types.UID]bool{}
	for _, o := range list {
		p := o.(*corev1.Pod)
		there[p.UID] = true
		s.seeOne(p)
	}
	for uid, l := range s.pods {
		if !there[uid] && !l.gone {
			l.gone = true
			l.unsure = l.unsure || l.counts == "" && l.held
			s.pods[uid] = l
		}
	}
}

// all returns what has been seen so far.
func (s *observations) all() map[types.UID]life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.pods)
}

// watch runs until ctx ends.
func (s *observations) watch(ctx context.Context, client kubernetes.Interface, namespace string) {
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &corev1.Pod{}, sink{s}, cache.ReflectorOptions{
		Name: "chaos", Logger: &klog.Logger{}, // silent: the test itself stops the API server
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 5, Cap: time.Second},
	})
	for ctx.Err() == nil {
		if err := r.ListAndWatchWithContext(ctx); err != nil {
			pass(ctx, 100*time.Millisecond)
		}
	}
}

// sink adapts observations to client-go's reflector.
type sink struct{ *observations }

func (s sink) Add(o any) error                    { s.see(o.(*corev1.Pod)); return nil }
func (s sink) Update(o any) error                 { s.see(o.(*corev1.Pod)); return nil }
func (s sink) Delete(o any) error                 { s.end(o.(*corev1.Pod)); return nil }
func (s sink) Replace(list []any, _ string) error { s.replace(list); return nil }
func (s sink) Resync() error                      { return nil }
