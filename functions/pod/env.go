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
