package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/events"
)

// traceparentEnv is where programs look for the trace that they are a part of (OpenTelemetry, "Environment Variables as
// Context Propagation Carriers").
const traceparentEnv = "TRACEPARENT"

// FirstEnv is what stands first in the environment of a Pod: its parameters, and before them its trace where the Job's
// annotation, or otherwise the operator, wants it. A parameter of that name takes its place.
func FirstEnv(j *batchv1.Job, traced bool, parameters []corev1.EnvVar) []corev1.EnvVar {
	named := slices.ContainsFunc(parameters, func(v corev1.EnvVar) bool { return v.Name == traceparentEnv })
	if named || !events.PodsGetTrace(j, traced) {
		return parameters
	}
	return append([]corev1.EnvVar{{Name: traceparentEnv, Value: events.JobTrace(j).String()}}, parameters...)
}
