package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/bus"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// observed is the metrics of a program with everything in one.
func observed() *metrics {
	m, _, _ := observing(1)
	m.forReconciler()
	return m
}

// everything happens once in the namespace.
func everything(m *metrics, namespace string) {
	after := recent(tick(0, events.Started))
	after.Namespace = namespace
	m.schedules.ScheduleStatusWritten(recent(), after, nil)
	m.schedules.JobCreated(namespace, noon, noon)
	m.podStarted(namespace, noon, noon)
	j := resting(1, 5)
	j.Namespace = namespace
	m.jobs.StatusWritten(jobIn(namespace), j, nil)
}

// namedByKubernetes reports whether Kubernetes has chosen the name. Those are as they are: TestNamesOfKubernetes, TestTwinsAreThoseOfKubeStateMetrics.
func namedByKubernetes(name string) bool {
	return strings.HasPrefix(name, "job_controller_") || strings.HasPrefix(name, "cronjob_controller_") || strings.HasPrefix(name, "kube_cronjob_")
}

// The names, units, labels and help texts follow Prometheus' conventions, by its own linter.
func TestNamesByPrometheusConventions(t *testing.T) {
	m := observed()
	m.expect("job")
	m.bus(func() error { return nil })
	m.watches(func() int { return 0 })
	m.backlog(func() (bus.Backlog, bool) { return bus.Backlog{Messages: 1}, true })
	m.uses(func() []bus.Use { return []bus.Use{{Stream: "x", MaxBytes: 1}} })
	everything(m, "shop")
	m.turned(engine.Turned{Function: "job", Facts: []events.Event{events.JobObserved{}}})
	m.serves("job", 1, 1)
	m.effects.WithLabelValues("job", "CreatePod", "ok")
	m.effectTime.WithLabelValues("CreatePod")
	m.published.WithLabelValues("job", "JobObserved")
	m.spans.WithLabelValues("exported")
	m.jobs.handled.WithLabelValues(string(batchv1.PodFailurePolicyActionIgnore))
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
	}
	for _, name := range describedBy(m) {
		if !slices.Contains(names, name) && !namedByKubernetes(name) {
			t.Errorf("%s has no sample to look at", name)
		}
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !namedByKubernetes(p.Metric) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
