package run

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSetEnv: a variable of the template keeps its place, so that it may refer to those before it, and those after it to it; a
// new one comes first, so that all others may refer to it.
func TestSetEnv(t *testing.T) {
	p := corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{
		{Name: "BASE", Value: "/data"}, {Name: "DIR", Value: "$(BASE)/today"}, {Name: "FILE", Value: "$(DIR)/all.csv"}, {Name: "DIR", Value: "twice"},
	}}, {}}}
	SetEnv(&p, []string{"DIR=$(BASE)/friday", "NEW=1"})
	for i, want := range []string{"NEW=1 BASE=/data DIR=$(BASE)/friday FILE=$(DIR)/all.csv ", "DIR=$(BASE)/friday NEW=1 "} {
		got := ""
		for _, e := range p.Containers[i].Env {
			got += e.Name + "=" + e.Value + " "
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
