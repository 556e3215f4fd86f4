package act

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
	"github.com/jobstream/jobstream/functions/pod"
)

const (
	// maxParametersAge bounds how long values are used without having been read. They are immutable, but the ConfigMap may be
	// deleted and created again with others, and then the user wants these.
	maxParametersAge = time.Minute
	// cachedParameters is how many ConfigMaps are cached. One may weigh a megabyte, and only Jobs whose Pods are being created
	// need theirs.
	cachedParameters = 32
)

// configMapNotFound is, like effect.InvalidParameters, a refusal because of a user's ConfigMap and not by the API server.
const configMapNotFound = "ConfigMapNotFound"

// readParameters answers with the number of completions that have values in the current ConfigMap.
func (a *Actor) readParameters(ctx context.Context, key events.Key, e effect.ReadParameters) ([]events.Event, error) {
	p, err := a.parameters.load(ctx, types.NamespacedName{Namespace: key.Namespace, Name: e.ConfigMap}, 0, a.getParameters)
	if err != nil {
		return a.refused(e, events.NoSerial, err)
	}
	return []events.Event{events.ParametersObserved{Name: e.ConfigMap, Count: p.Count(), At: a.now()}}, nil
}

// parametersAt returns the values for the Pod to create, nil if its Job has none. It fails if they are not known for certain: a
// Pod with wrong values would do wrong work.
func (a *Actor) parametersAt(ctx context.Context, namespace string, e effect.CreatePod) ([]corev1.EnvVar, error) {
	if e.Parameters == "" {
		return nil, nil
	}
	p, err := a.parameters.load(ctx, types.NamespacedName{Namespace: namespace, Name: e.Parameters}, maxParametersAge, a.getParameters)
	if err != nil {
		return nil, err
	}
	values, err := p.At(e.Index)
	if err != nil {
		return nil, unusable(e.Parameters, err)
	}
	return values, nil
}

// getParameters reads the current ConfigMap. Its error is a userError if a user has to change something about it.
func (a *Actor) getParameters(ctx context.Context, name types.NamespacedName) (pod.Parameters, error) {
	c := &corev1.ConfigMap{}
	err := a.call(ctx, name.Namespace, a.core.Get().Namespace(name.Namespace).Resource("configmaps").Name(name.Name), c)
	switch {
	case apierrors.IsNotFound(err):
		return pod.Parameters{}, userError{configMapNotFound, fmt.Sprintf("the ConfigMap %s, which the annotation %s names, does not exist in the Job's namespace: create it, and the Job goes on",
			name.Name, v1alpha1.PerCompletionEnvAnnotation)}
	case err != nil:
		return pod.Parameters{}, err
	}
	p, err := pod.ReadParameters(c)
	if err != nil {
		return pod.Parameters{}, unusable(name.Name, err)
	}
	return p, nil
}

func unusable(name string, why error) error {
	return userError{effect.InvalidParameters, fmt.Sprintf("the ConfigMap %s, which the annotation %s names, cannot be used: %v", name, v1alpha1.PerCompletionEnvAnnotation, why)}
}

// parameterCache caches valid values for a short time, so that the creation of 500 Pods at the same time costs one GET.
type parameterCache struct {
	now func() time.Time

	mu   sync.Mutex // makes get-or-add one step
	maps *lru.Cache // types.NamespacedName -> *readOnce
}

// readOnce is what was read of one ConfigMap. The gate is held while it is being read, and guards the other fields.
type readOnce struct {
	gate
	parameters pod.Parameters
	read       time.Time // zero while there are no valid values
}

func newParameterCache(now func() time.Time) *parameterCache {
	return &parameterCache{now: now, maps: lru.New(cachedParameters)}
}

// load returns the values if they were read less than age ago; otherwise fetch reads them now.
func (c *parameterCache) load(ctx context.Context, name types.NamespacedName, age time.Duration,
	fetch func(context.Context, types.NamespacedName) (pod.Parameters, error),
) (pod.Parameters, error) {
	e := c.entry(name)
	if err := e.enter(ctx); err != nil {
		return pod.Parameters{}, err
	}
	defer e.leave()
	if !e.read.IsZero() && c.now().Sub(e.read) < age {
		return e.parameters, nil
	}
	p, err := fetch(ctx, name)
	if err != nil {
		e.parameters, e.read = pod.Parameters{}, time.Time{}
		return pod.Parameters{}, err
	}
	e.parameters, e.read = p, c.now()
	return p, nil
}

func (c *parameterCache) entry(name types.NamespacedName) *readOnce {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.maps.Get(name); ok {
		return e.(*readOnce)
	}
	e := &readOnce{gate: newGate()}
	c.maps.Add(name, e)
	return e
}
