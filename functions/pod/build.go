package pod

import (
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

const completionIndexEnv = "JOB_COMPLETION_INDEX"

// Build builds the Pod of a CreatePod from the Job's template, as the built-in controller would, and adds the label and the
// serial by which jobstream recognizes it. It does not change the Job, and the Pod shares nothing with it. first are the first
// variables in the environment of the containers, nil for none: FirstEnv.
func Build(j *batchv1.Job, e effect.CreatePod, first []corev1.EnvVar) *corev1.Pod {
	t := j.Spec.Template.DeepCopy()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       j.Namespace,
			Name:            e.Name,
			Labels:          orEmpty(t.Labels),
			Annotations:     orEmpty(t.Annotations),
			Finalizers:      t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: t.Spec,
	}
	if !slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) {
		p.Finalizers = append(p.Finalizers, batchv1.JobTrackingFinalizer)
	}
	p.Labels[v1alpha1.ManagedLabel] = "true"
	p.Annotations[v1alpha1.SerialAnnotation] = strconv.Itoa(e.Serial)
	if e.Index != events.NoIndex {
		giveIndex(p, j.Name, e.Index)
	}
	if e.PerIndex {
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(int(e.IndexFailures))
		if e.IndexIgnoredFailures > 0 {
			p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(int(e.IndexIgnoredFailures))
		}
	}
	giveFirst(p, first)
	return p
}

// giveIndex sets the index of a Pod of an Indexed Job in every place in which Kubernetes does: annotation, label, environment and
// hostname.
func giveIndex(p *corev1.Pod, jobName string, index int) {
	i := strconv.Itoa(index)
	p.Annotations[batchv1.JobCompletionIndexAnnotation] = i
	p.Labels[batchv1.JobCompletionIndexAnnotation] = i
	p.Spec.Hostname = hostname(jobName, i)
	for k := range p.Spec.InitContainers {
		addIndexEnv(&p.Spec.InitContainers[k])
	}
	for k := range p.Spec.Containers {
		addIndexEnv(&p.Spec.Containers[k])
	}
}

// addIndexEnv adds the variable with the index, unless the user has defined one of that name.
func addIndexEnv(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == completionIndexEnv }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: completionIndexEnv, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
	}})
}

// hostname returns "<job>-<index>". The API server rejects an Indexed Job for which that is not a DNS label. But the name of an
// elastic Job that starts with 0 completions, or whose indexes gain digits, may have to be adapted here.
func hostname(jobName, index string) string {
	return cut(strings.ReplaceAll(jobName, ".", "-"), maxName-1-len(index)) + "-" + index
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
