package pod

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

// TestPodsGetTheirTraceparent: in every container that does not set its own, before all other variables, so that these may use it;
// and nowhere unless the Job or the operator wants it.
func TestPodsGetTheirTraceparent(t *testing.T) {
	own := corev1.EnvVar{Name: "TRACEPARENT", Value: "own"}
	told := corev1.EnvVar{Name: "TRACEPARENT", Value: events.JobTrace(testJob()).String()}
	fruit := corev1.EnvVar{Name: "FRUIT", Value: "apple"}
	for name, tt := range map[string]struct {
		annotation string
		flag       bool
		parameters []corev1.EnvVar
		want       [3][]corev1.EnvVar // of the init container, and of two containers, the second of which has its own
	}{
		"neither does":                    {want: [3][]corev1.EnvVar{nil, nil, {own}}},
		"the Job does":                    {annotation: "true", want: [3][]corev1.EnvVar{{told}, {told}, {own}}},
		"the operator does":               {flag: true, want: [3][]corev1.EnvVar{{told}, {told}, {own}}},
		"the Job does not":                {annotation: "false", flag: true, want: [3][]corev1.EnvVar{nil, nil, {own}}},
		"the Job mumbles":                 {annotation: "yes", want: [3][]corev1.EnvVar{nil, nil, {own}}},
		"beside parameters":               {flag: true, parameters: []corev1.EnvVar{fruit}, want: [3][]corev1.EnvVar{{told, fruit}, {told, fruit}, {fruit, own}}},
		"a parameter that takes its name": {flag: true, parameters: []corev1.EnvVar{{Name: "TRACEPARENT", Value: "of the index"}}, want: [3][]corev1.EnvVar{{{Name: "TRACEPARENT", Value: "of the index"}}, {{Name: "TRACEPARENT", Value: "of the index"}}, {own}}},
	} {
		t.Run(name, func(t *testing.T) {
			j := testJob(func(j *batchv1.Job) {
				spec := &j.Spec.Template.Spec
				for i := range spec.InitContainers {
					spec.InitContainers[i].Env = nil
				}
				spec.Containers[0].Env, spec.Containers[1].Env = nil, []corev1.EnvVar{own}
				if tt.annotation != "" {
					j.Annotations = map[string]string{v1alpha1.PodTraceparentAnnotation: tt.annotation}
				}
			})
			p := Build(j, effect.CreatePod{Name: "pi-x", Index: events.NoIndex}, FirstEnv(j, tt.flag, tt.parameters))
			got := [3][]corev1.EnvVar{p.Spec.InitContainers[0].Env, p.Spec.Containers[0].Env, p.Spec.Containers[1].Env}
			for i := range got {
				if !slices.Equal(got[i], tt.want[i]) {
					t.Errorf("container %d: %+v, want %+v", i, got[i], tt.want[i])
				}
			}
		})
	}
}
