package run

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Objects are the objects to create: First, Second and Third return them in order.
type Objects struct {
	// Owner is a *batchv1.Job or a *v1alpha1.ScheduledJob, with kind and apiVersion set.
	Owner Object
	// Parameters holds the lists; nil if there are none. The caller sets its owner reference when the Owner's UID is known.
	Parameters *corev1.ConfigMap
	// Notes warn the user of what is valid, but may be meant differently.
	Notes []string
}

// Object is a Kubernetes object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Manifests returns the objects in the order in which "kubectl apply" should create them: dependencies first.
func (o Objects) Manifests() []Object {
	if o.Parameters == nil {
		return []Object{o.Owner}
	}
	return []Object{o.Parameters, o.Owner}
}

// First returns the object to create first. A Job with lists is suspended, with a label that names run as the reason, until its
// ConfigMap exists. A ScheduledJob is not suspended: it would skip for good the times that come meanwhile, while one of its Jobs
// that starts too early simply waits.
func (o Objects) First() Object {
	j, is := o.Owner.(*batchv1.Job)
	if !is || o.Parameters == nil {
		return o.Owner
	}
	j = j.DeepCopy()
	if j.Labels == nil {
		j.Labels = map[string]string{}
	}
	j.Labels[v1alpha1.SuspendedByLabel] = v1alpha1.SuspendedByRun
	j.Spec.Suspend = new(true)
	return j
}

// Second returns the ConfigMap, owned by the Owner with that UID; nil if there are no lists. The reference does not block the
// owner's deletion: that would take permission to write the owner's finalizers.
func (o Objects) Second(owner types.UID) *corev1.ConfigMap {
	if o.Parameters == nil {
		return nil
	}
	kind := o.Owner.GetObjectKind().GroupVersionKind()
	c := o.Parameters.DeepCopy()
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: o.Owner.GetName(), UID: owner}}
	return c
}

// Third returns the merge patch that resumes the Job with that UID; nil if nothing was suspended.
func (o Objects) Third(owner types.UID) []byte {
	if _, is := o.Owner.(*batchv1.Job); !is || o.Parameters == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}},"spec":{"suspend":false}}`, owner, v1alpha1.SuspendedByLabel)
}

// container is the name of the only container.
const container = "main"

func (o *Options) owner(at moment, lists []list) Object {
	meta := metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace}
	if at.once == nil && at.schedule == "" {
		meta.Annotations = o.annotations(lists)
		return &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"}, ObjectMeta: meta, Spec: o.jobSpec()}
	}
	s := &v1alpha1.ScheduledJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ScheduledJobKind},
		ObjectMeta: meta,
		Spec: v1alpha1.ScheduledJobSpec{
			Schedule:    at.schedule,
			JobTemplate: batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: o.annotations(lists)}, Spec: o.jobSpec()},
		},
	}
	if at.once != nil {
		s.Spec.RunAt = new(metav1.NewTime(*at.once))
	}
	if at.zone != "" {
		s.Spec.TimeZone = &at.zone
	}
	return s
}

func (o *Options) jobSpec() batchv1.JobSpec {
	s := batchv1.JobSpec{
		ManagedBy:   new(v1alpha1.DefaultManagedBy),
		Completions: o.Completions, Parallelism: o.Parallelism, BackoffLimit: o.BackoffLimit,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicy(o.Restart),
			Containers:    []corev1.Container{{Name: container, Image: o.Image, Command: o.Command, Env: o.env()}},
		}},
	}
	if o.Completions != nil {
		// The proposal gives every completion an index.
		s.CompletionMode = new(batchv1.IndexedCompletion)
	}
	return s
}

func (o *Options) annotations(lists []list) map[string]string {
	out := map[string]string{}
	if len(lists) > 0 {
		out[v1alpha1.PerCompletionEnvAnnotation] = o.parametersName()
	}
	if o.BackoffSeconds != nil {
		out[v1alpha1.BackoffSecondsAnnotation] = strconv.Itoa(int(*o.BackoffSeconds))
	}
	if o.FailedPodsLimit != nil {
		out[v1alpha1.FailedPodsLimitAnnotation] = strconv.Itoa(int(*o.FailedPodsLimit))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (o *Options) parametersName() string { return o.Name + "-env-" + o.Suffix }

// parameters returns the ConfigMap in the form that functions/job reads.
func (o *Options) parameters(lists []list) *corev1.ConfigMap {
	if len(lists) == 0 {
		return nil
	}
	data := map[string]string{}
	for _, l := range lists {
		data[l.key] = l.lines()
	}
	return Parameters(o.Namespace, o.parametersName(), data)
}

// Parameters returns a ConfigMap with the lists of a Job: a key for each variable, a line for each index.
func Parameters(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Immutable:  new(true),
		Data:       data,
	}
}
