package pod

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
)

// traceparentEnv is the variable in which programs look for their trace (OpenTelemetry, "Environment Variables as Context
// Propagation Carriers").
const traceparentEnv = "TRACEPARENT"

// FirstEnv returns the first variables in the environment of a Pod: its parameters, and before them its trace if the Job's
// annotation, or otherwise the operator, wants it. A parameter of that name takes precedence.
func FirstEnv(j *batchv1.Job, traced bool, parameters []corev1.EnvVar) []corev1.EnvVar {
	named := slices.ContainsFunc(parameters, func(v corev1.EnvVar) bool { return v.Name == traceparentEnv })
	if named || !events.PodsGetTrace(j, traced) {
		return parameters
	}
	return append([]corev1.EnvVar{{Name: traceparentEnv, Value: events.JobTrace(j).String()}}, parameters...)
}

// giveFirst puts the variables first into the environment of all containers, so that "$(FRUIT)" in args and in other variables
// refers to them. A container's own variable of the same name takes precedence.
func giveFirst(p *corev1.Pod, variables []corev1.EnvVar) {
	give := func(containers []corev1.Container) {
		for i := range containers {
			c := &containers[i]
			first := slices.DeleteFunc(slices.Clone(variables), func(v corev1.EnvVar) bool {
				return slices.ContainsFunc(c.Env, func(own corev1.EnvVar) bool { return own.Name == v.Name })
			})
			c.Env = append(first, c.Env...)
		}
	}
	give(p.Spec.InitContainers)
	give(p.Spec.Containers)
}
