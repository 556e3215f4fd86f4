package app

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// others is the label of the namespaces that have no series of their own, and of any other value that is not expected.
	others = "other"
	// namespaceLabel is the name of the label.
	namespaceLabel = "namespace"
	// idleNamespace is how long after its last event a namespace may lose its place: long after Prometheus has read its series.
	idleNamespace = time.Hour
)

// tenants bounds the number of series that have a namespace among their labels: users choose namespaces, and every series takes
// memory here and in Prometheus. The first namespaces that something happens in get a place. When all are taken, a new one gets the
// place of the one in which nothing has happened for the longest time, an hour at least, whose series end; as long as there is none,
// it is among the others.
type tenants struct {
	mu     sync.Mutex
	most   int
	places map[string]time.Time // when something happened last
	series []droppable
	now    func() time.Time
}

// droppable is a vector of series.
type droppable interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// defaultNamespaces is the default number of places.
const defaultNamespaces = 100

func newTenants() *tenants {
	return &tenants{most: defaultNamespaces, places: map[string]time.Time{}, now: time.Now}
}

// with adds series whose labels include the namespace.
func (t *tenants) with(series ...droppable) { t.series = append(t.series, series...) }

// allow sets the number of places; 0 puts every namespace among the others.
func (t *tenants) allow(most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.most = most
}

// in calls count with the label of the namespace. No series ends meanwhile.
func (t *tenants) in(namespace string, count func(label string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.place(namespace) {
		namespace = others
	}
	count(namespace)
}

// place reports whether the namespace has a place, or gets one. The namespace that is called like the others is one of them.
func (t *tenants) place(namespace string) bool {
	now := t.now()
	_, has := t.places[namespace]
	if !has && (namespace == others || len(t.places) >= t.most && !t.makeRoom(now)) {
		return false
	}
	t.places[namespace] = now
	return true
}

// makeRoom takes the place of the namespace in which nothing has happened for the longest time, if it is idle.
func (t *tenants) makeRoom(now time.Time) bool {
	oldest, last := "", now.Add(-idleNamespace)
	for namespace, at := range t.places {
		if at.Before(last) {
			oldest, last = namespace, at
		}
	}
	if oldest == "" {
		return false
	}
	delete(t.places, oldest)
	for _, s := range t.series {
		s.DeletePartialMatch(prometheus.Labels{namespaceLabel: oldest})
	}
	return true
}
