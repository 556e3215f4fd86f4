package oracle

import (
	"encoding/json"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
)

// Rebuild returns a Job that projects to j, with the smallest template that the API server accepts.
func Rebuild(j events.Job) *batchv1.Job {
	out := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: j.Name, UID: j.UID, Generation: j.Generation,
			ResourceVersion:   strconv.FormatUint(j.Version, 10),
			CreationTimestamp: metav1.NewTime(j.Created),
			Annotations:       annotations(j),
		},
		Spec: batchv1.JobSpec{
			Parallelism:             &j.Parallelism,
			Completions:             j.Completions,
			CompletionMode:          either(j.Indexed, batchv1.IndexedCompletion, batchv1.NonIndexedCompletion),
			BackoffLimit:            &j.BackoffLimit,
			PodReplacementPolicy:    either(j.ReplaceFailedOnly, batchv1.Failed, batchv1.TerminatingOrFailed),
			Suspend:                 &j.Suspended,
			ActiveDeadlineSeconds:   j.ActiveDeadlineSeconds,
			BackoffLimitPerIndex:    j.BackoffLimitPerIndex,
			MaxFailedIndexes:        j.MaxFailedIndexes,
			PodFailurePolicy:        j.PodFailurePolicy.DeepCopy(),
			SuccessPolicy:           j.SuccessPolicy.DeepCopy(),
			TTLSecondsAfterFinished: j.TTLSecondsAfterFinished,
			ManagedBy:               new(v1alpha1.DefaultManagedBy),
			Template:                template(j),
		},
		Status: *j.Status.DeepCopy(),
	}
	if j.Selector != nil {
		out.Spec.ManualSelector, out.Spec.Selector = new(true), j.Selector.DeepCopy()
	}
	if j.Foreign {
		out.Spec.ManagedBy = new("example.com/another-controller")
	}
	if j.Deleting {
		at := metav1.NewTime(j.Created)
		out.DeletionTimestamp, out.DeletionGracePeriodSeconds = &at, new(int64(0))
		out.Finalizers = []string{metav1.FinalizerDeleteDependents}
	}
	return out
}

func either[T any](first bool, a, b T) *T {
	if first {
		return &a
	}
	return &b
}

// template has the containers that a podFailurePolicy names, and the labels that the user's selector demands.
func template(j events.Job) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}}
	if j.RestartsInPlace {
		t.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	}
	for _, name := range containers(j.PodFailurePolicy) {
		t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: name, Image: "busybox"})
	}
	if j.Selector == nil {
		return t
	}
	t.Labels = map[string]string{}
	for k, v := range j.Selector.MatchLabels {
		t.Labels[k] = v
	}
	for _, e := range j.Selector.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			t.Labels[e.Key] = e.Values[0]
		case metav1.LabelSelectorOpExists:
			t.Labels[e.Key] = ""
		}
	}
	return t
}

func containers(p *batchv1.PodFailurePolicy) []string {
	out := []string{"main"}
	if p == nil {
		return out
	}
	for _, r := range p.Rules {
		if r.OnExitCodes != nil && r.OnExitCodes.ContainerName != nil && !slices.Contains(out, *r.OnExitCodes.ContainerName) {
			out = append(out, *r.OnExitCodes.ContainerName)
		}
	}
	return out
}

// annotations returns the user's options and jobstream's own annotations, as internal/cluster/act writes them.
func annotations(j events.Job) map[string]string {
	out := map[string]string{}
	say := func(name string, n *int64) {
		if n != nil {
			out[name] = strconv.FormatInt(*n, 10)
		}
	}
	say(v1alpha1.BackoffSecondsAnnotation, j.Options.BackoffSeconds)
	say(v1alpha1.PendingDeadlineSecondsAnnotation, j.Options.PendingDeadlineSeconds)
	if n := j.Options.FailedPodsLimit; n != nil {
		say(v1alpha1.FailedPodsLimitAnnotation, new(int64(*n)))
	}
	if j.Options.Parameters != "" {
		out[v1alpha1.PerCompletionEnvAnnotation] = j.Options.Parameters
	}
	if j.Options.PublishFailedValues {
		out[v1alpha1.PublishFailedValuesAnnotation] = "true"
	}
	if j.NextSerial != 0 {
		out[v1alpha1.NextSerialAnnotation] = strconv.Itoa(j.NextSerial)
	}
	if record, err := json.Marshal(j.Backoff); err == nil && j.Backoff != (events.Backoff{}) {
		out[v1alpha1.BackoffAnnotation] = string(record)
	}
	return out
}
