package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A ScheduledJob is known when its edit has been observed: before, the state of the reconciler is that of a new one.
func TestIsKnown(t *testing.T) {
	object := func(generation, observed int64, decided string) *unstructured.Unstructured {
		status := map[string]any{"observedGeneration": observed}
		if decided != "" {
			status["decidedUntil"] = decided
		}
		u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		u.SetGeneration(generation)
		return u
	}
	for _, c := range []struct {
		what  string
		of    *unstructured.Unstructured
		known bool
	}{
		{"created", object(1, 0, ""), false},
		{"decided", object(1, 1, "2026-06-01T12:00:00Z"), false},
		{"edited", object(2, 1, "2026-06-01T12:00:00Z"), false},
		{"edited before it was decided", object(2, 2, ""), false},
		{"the edit is observed", object(2, 2, "2026-06-01T12:00:00Z"), true},
	} {
		if got := isKnown(c.of); got != c.known {
			t.Errorf("%s: %v, want %v", c.what, got, c.known)
		}
	}
}

// Objects are in all namespaces, as evenly as can be.
func TestNamespaces(t *testing.T) {
	in := map[string]int{}
	for n := range 100 {
		in[namespaceOf(n)]++
	}
	if len(in) != namespaces {
		t.Errorf("%d namespaces, want %d", len(in), namespaces)
	}
	for name, has := range in {
		if has != 100/namespaces {
			t.Errorf("%s has %d objects", name, has)
		}
	}
}
