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

// Objects are what shall be created: see First, Second and Third for how.
type Objects struct {
	// Owner is a *batchv1.Job or a *v1alpha1.ScheduledJob. What it says of itself (kind, apiVersion) is set.
	Owner Object
	// Parameters holds the lists, nil where there are none. Its owner reference is for whoever knows the Owner's UID.
	Parameters *corev1.ConfigMap
	// Notes are for the user: nothing is wrong, but something may be meant otherwise.
	Notes []string
}

// Object is one of Kubernetes, of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Manifests are the objects in the order in which "kubectl apply" should find them: what is needed comes first.
func (o Objects) Manifests() []Object {
	if o.Parameters == nil {
		return []Object{o.Owner}
	}
	return []Object{o.Parameters, o.Owner}
}

// First is what is created before anything else. A Job with lists is suspended, and says who does that, until its ConfigMap is
// there. A ScheduledJob is not: what comes while it is suspended is skipped for good, and a Job of its that comes too early
// waits by itself.
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

// Second is the ConfigMap, owned by the Owner, which has that UID; nil where there are no lists. The reference blocks nothing:
// for that, one would have to be allowed to write the owner's finalizers.
func (o Objects) Second(owner types.UID) *corev1.ConfigMap {
	if o.Parameters == nil {
		return nil
	}
	kind := o.Owner.GetObjectKind().GroupVersionKind()
	c := o.Parameters.DeepCopy()
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: o.Owner.GetName(), UID: owner}}
	return c
}

// Third is the merge patch that starts the Job which has that UID; nil where nothing was suspended.
func (o Objects) Third(owner types.UID) []byte {
	if _, is := o.Owner.(*batchv1.Job); !is || o.Parameters == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"labels":{%q:null}},"spec":{"suspend":false}}`, owner, v1alpha1.SuspendedByLabel)
}

// container is the name of the only one.
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

// parameters is the ConfigMap as functions/job reads it.
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

// Parameters is a ConfigMap with the lists of a Job: a key for each variable, a line for each index.
func Parameters(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Immutable:  new(true),
		Data:       data,
	}
}
