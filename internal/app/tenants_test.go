package app

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// places is a counter by namespace whose tenants have so many places, and a clock that a test can set ahead.
func places(most int) (m *metrics, count func(namespace string), wait func(time.Duration)) {
	m = newMetrics()
	c, now := m.counter("test_total", "A test.", namespaceLabel), time.Unix(0, 0)
	m.tenants.with(c)
	m.tenants.now = func() time.Time { return now }
	m.tenants.allow(most)
	return m, func(namespace string) { m.tenants.in(namespace, func(label string) { c.WithLabelValues(label).Inc() }) },
		func(d time.Duration) { now = now.Add(d) }
}

// series are the samples whose names begin with the prefix, without it, in order.
func series(t *testing.T, m *metrics, prefix string) string {
	t.Helper()
	_, body := get(t, m.handler(), "/metrics")
	var out []string
	for line := range strings.Lines(body) {
		if s, ours := strings.CutPrefix(line, prefix); ours {
			out = append(out, strings.TrimSpace(s))
		}
	}
	return strings.Join(out, "\n")
}

func TestNamespacesShareAFewSeries(t *testing.T) {
	for _, tt := range []struct {
		name  string
		most  int
		steps func(count func(string), wait func(time.Duration))
		want  string
	}{
		{"room for all", 2, func(count func(string), _ func(time.Duration)) { count("a"); count("b"); count("a") }, `a=2 b=1`},
		{"no room for the third", 2, func(count func(string), _ func(time.Duration)) {
			count("a")
			count("b")
			count("c")
			count("d")
			count("a")
		}, `a=2 b=1 other=2`},
		{"no room at all", 0, func(count func(string), _ func(time.Duration)) { count("a"); count("b") }, `other=2`},
		{"a namespace that is called like the others", 2, func(count func(string), _ func(time.Duration)) { count("other"); count("a"); count("b") }, `a=1 b=1 other=1`},
		{"one that is not idle for long keeps its place", 1, func(count func(string), wait func(time.Duration)) { count("a"); wait(idleNamespace); count("b") }, `a=1 other=1`},
		{"one that is idle loses it", 1, func(count func(string), wait func(time.Duration)) {
			count("a")
			wait(idleNamespace + 1)
			count("b")
			count("b")
		}, `b=2`},
		{"of two that are idle the one that is so for longer", 2, func(count func(string), wait func(time.Duration)) {
			count("a")
			wait(time.Second)
			count("b")
			wait(2 * idleNamespace)
			count("c")
		}, `b=1 c=1`},
		{"one that returns begins at 0", 1, func(count func(string), wait func(time.Duration)) {
			count("a")
			count("a")
			wait(2 * idleNamespace)
			count("b")
			wait(2 * idleNamespace)
			count("a")
		}, `a=1`},
		{"the others stay", 1, func(count func(string), wait func(time.Duration)) {
			count("a")
			count("b")
			wait(2 * idleNamespace)
			count("b")
		}, `b=1 other=1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, count, wait := places(tt.most)
			tt.steps(count, wait)
			got := strings.NewReplacer(`{namespace="`, "", `"} `, "=", "\n", " ").Replace(series(t, m, "test_total"))
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// A user who creates 10,000 namespaces gets no more series than the flag allows, in each of all metrics, neither at once nor over days; and those who
// were there before keep theirs.
func TestTenThousandHostileNamespaces(t *testing.T) {
	const most = 20
	m := observed()
	now := time.Unix(0, 0)
	m.tenants.now = func() time.Time { return now }
	m.tenants.allow(most)
	everything(m, "shop")
	for _, pace := range []time.Duration{0, time.Minute} {
		for i := range 10_000 {
			everything(m, fmt.Sprint("hostile-", i))
			if i%10 == 0 {
				everything(m, "shop")
			}
			now = now.Add(pace)
		}
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		tenanted := 0
		for _, f := range families {
			namespaces, samples := map[string]bool{}, 0
			for _, s := range f.GetMetric() {
				for _, l := range s.GetLabel() {
					if l.GetName() == namespaceLabel {
						namespaces[l.GetValue()] = true
						samples++
					}
				}
			}
			if samples == 0 {
				continue
			}
			tenanted++
			t.Logf("one every %v: %s has %d lines for %d namespaces", pace, f.GetName(), strings.Count(series(t, m, f.GetName()), "\n")+1, len(namespaces))
			if len(namespaces) > most+1 || samples > 7*(most+1) || !namespaces["shop"] || !namespaces[others] {
				t.Errorf("one every %v: %s has %d series of %d namespaces: %v", pace, f.GetName(), samples, len(namespaces), namespaces)
			}
		}
		if tenanted != 4 {
			t.Errorf("%d metrics have namespaces", tenanted)
		}
	}
}
