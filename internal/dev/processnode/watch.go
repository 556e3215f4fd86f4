package processnode

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// sink receives a watch of Pods. It implements cache.ReflectorStore: client-go's reflector so does the listing, watching
// and resuming, without a second copy of every Pod.
type sink struct {
	observation func(*v1.Pod)
	gone        func(*v1.Pod)
	replace     func([]*v1.Pod)
}

func (s sink) Add(o any) error    { s.observation(o.(*v1.Pod)); return nil }
func (s sink) Update(o any) error { s.observation(o.(*v1.Pod)); return nil }
func (s sink) Delete(o any) error { s.gone(o.(*v1.Pod)); return nil }
func (s sink) Resync() error      { return nil }

func (s sink) Replace(list []any, _ string) error {
	all := make([]*v1.Pod, 0, len(list))
	for _, o := range list {
		all = append(all, o.(*v1.Pod))
	}
	s.replace(all)
	return nil
}

const (
	// watchRetry is the first wait after an API server that does not answer, doubled up to watchRetryMax: that of a
	// development cluster is restarted often, and a node that sleeps for half a minute after it is back, as client-go
	// would, holds up every test.
	watchRetry    = 100 * time.Millisecond
	watchRetryMax = 3 * time.Second
)

// watch feeds the sink until ctx ends.
func watch(ctx context.Context, client kubernetes.Interface, log *slog.Logger, selector fields.Selector, s sink) {
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", selector)
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), &v1.Pod{}, s, cache.ReflectorOptions{
		Name: "processnode", Logger: &klog.Logger{}, // silent: what it returns is logged below
		Backoff: &wait.Backoff{Duration: watchRetry, Factor: 2, Jitter: 0.5, Steps: 6, Cap: watchRetryMax},
	})
	for ctx.Err() == nil {
		if err := r.ListAndWatchWithContext(ctx); err != nil && ctx.Err() == nil {
			log.Warn("cannot watch pods, will try again", "selector", selector, "err", err)
			pause(ctx, watchRetry)
		}
	}
}

// boundTo selects the Pods of a node, and unbound those that wait for the default scheduler.
func boundTo(node string) fields.Selector { return fields.OneTermEqualSelector("spec.nodeName", node) }

func unbound() fields.Selector {
	return fields.AndSelectors(
		fields.OneTermEqualSelector("spec.nodeName", ""),
		fields.OneTermEqualSelector("spec.schedulerName", v1.DefaultSchedulerName),
	)
}

func (s *pods) sink() sink {
	return sink{observation: s.observation, gone: func(o *v1.Pod) { s.gone(o.UID) }, replace: s.replace}
}

func (b *binder) sink() sink {
	return sink{observation: b.observation, gone: b.gone, replace: b.replace}
}

// name of a Pod.
func nameOf(o *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}
