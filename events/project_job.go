package events

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// Claim decides which Jobs belong to jobstream, and which of their labels are published.
type Claim struct {
	// ManagedBy is the value of spec.managedBy that hands a Job to jobstream.
	ManagedBy string
	// Unmanaged also claims the Jobs without spec.managedBy and those of Kubernetes' own controller, for clusters where that is
	// switched off.
	Unmanaged bool
	// Labels are the keys of the labels of Jobs that public events carry.
	Labels []string
}

// Matches reports whether the Job belongs to jobstream. A Job that names another controller never does.
func (c Claim) Matches(j *batchv1.Job) bool {
	switch by := orDefault(j.Spec.ManagedBy, batchv1.JobControllerName); by {
	case c.ManagedBy:
		return true
	case batchv1.JobControllerName:
		return c.Unmanaged
	}
	return false
}

// ProjectJob extracts what functions need of a Job. It expects an object that the API server has defaulted.
func ProjectJob(j *batchv1.Job, claim Claim) Job {
	s := &j.Spec
	out := Job{
		Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		Version:           Version(j.ResourceVersion),
		Generation:        j.Generation,
		Foreign:           !claim.Matches(j),
		Deleting:          j.DeletionTimestamp != nil,
		Created:           j.CreationTimestamp.UTC(),
		Parallelism:       orDefault(s.Parallelism, 1),
		Completions:       s.Completions,
		Indexed:           orDefault(s.CompletionMode, "") == batchv1.IndexedCompletion,
		BackoffLimit:      orDefault(s.BackoffLimit, 6),
		RestartsInPlace:   s.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure,
		ReplaceFailedOnly: s.PodFailurePolicy != nil || orDefault(s.PodReplacementPolicy, "") == batchv1.Failed,
		Suspended:         orDefault(s.Suspend, false),

		ActiveDeadlineSeconds:   s.ActiveDeadlineSeconds,
		BackoffLimitPerIndex:    s.BackoffLimitPerIndex,
		MaxFailedIndexes:        s.MaxFailedIndexes,
		PodFailurePolicy:        s.PodFailurePolicy.DeepCopy(),
		SuccessPolicy:           s.SuccessPolicy.DeepCopy(),
		TTLSecondsAfterFinished: s.TTLSecondsAfterFinished,

		Owner:     runOwner(j),
		ManagedBy: orDefault(s.ManagedBy, ""),
		Labels:    chosen(j.Labels, claim.Labels),

		Status: *j.Status.DeepCopy(),
	}
	if !generated(s.Selector, j.UID) {
		out.Selector = s.Selector.DeepCopy()
	}
	if out.Suspended {
		out.SuspendedBy, out.Queue = suspender(j)
	}
	out.Options, out.Unsupported = options(j), unsupported(j)
	if j.Status.StartTime == nil && len(j.Status.Conditions) == 0 {
		return out // never started: such annotations can only have been copied from another Job, and no event needs the hash
	}
	out.TemplateHash = TemplateHash(&s.Template)
	out.NextSerial = number(j.Annotations, v1alpha1.NextSerialAnnotation, 0)
	// A record that a client has made unreadable delays nothing: the annotation is rewritten with the next status.
	_ = json.Unmarshal([]byte(j.Annotations[v1alpha1.BackoffAnnotation]), &out.Backoff)
	out.LastFailure = failure(j.Annotations[v1alpha1.LastFailureAnnotation])
	out.FailedIndexExits = indexExits(j.Annotations[v1alpha1.FailedIndexExitsAnnotation], orDefault(j.Status.FailedIndexes, ""))
	return out
}

// runOwner returns the ScheduledJob that controls the Job, or nil. A user's copy of one of its Jobs has another name, and so no
// nominal time.
func runOwner(j *batchv1.Job) *RunOwner {
	uid, run, ok := ProjectRun(j)
	if !ok {
		return nil
	}
	out := &RunOwner{ScheduledJob: Reference{Namespace: j.Namespace, Name: metav1.GetControllerOf(j).Name, UID: uid}}
	if j.Name == out.ScheduledJob.Name+"-"+NominalHash(run.Nominal) {
		out.Nominal = run.Nominal
	}
	out.Manual = run.Manual || out.Nominal.IsZero()
	return out
}

// chosen returns the labels with those keys; nil if there are none.
func chosen(labels map[string]string, keys []string) (out map[string]string) {
	for _, key := range keys {
		if value, ok := labels[key]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// generated reports whether the API server has derived the selector from the UID. Selectors from before Kubernetes 1.27 have
// another key, and count as the user's own.
func generated(s *metav1.LabelSelector, uid types.UID) bool {
	return s == nil || len(s.MatchExpressions) == 0 && len(s.MatchLabels) == 1 && s.MatchLabels[batchv1.ControllerUidLabel] == string(uid)
}

// unsupported lists what cannot be run correctly, so that such a Job is refused instead of run incorrectly.
func unsupported(j *batchv1.Job) (out []string) {
	mode := orDefault(j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	if mode != batchv1.NonIndexedCompletion && mode != batchv1.IndexedCompletion {
		out = append(out, fmt.Sprintf("spec.completionMode %q", mode))
	}
	if n := len(j.Spec.Template.Labels); n > MaxLabels-ownLabels && !generated(j.Spec.Selector, j.UID) {
		out = append(out, fmt.Sprintf("a selector of its own and %d labels in its template, of which at most %d are looked at", n, MaxLabels-ownLabels))
	}
	parameters := j.Annotations[v1alpha1.PerCompletionEnvAnnotation]
	switch {
	case parameters == "":
	case mode != batchv1.IndexedCompletion:
		out = append(out, "the annotation "+v1alpha1.PerCompletionEnvAnnotation+" and a spec.completionMode other than Indexed")
	case len(validation.IsDNS1123Subdomain(parameters)) > 0:
		out = append(out, fmt.Sprintf("the annotation %s: %q, which is not the name of a ConfigMap", v1alpha1.PerCompletionEnvAnnotation, cut(parameters)))
	}
	return out
}

const (
	// maxBackoffSeconds is Kubernetes' longest delay between Pods.
	maxBackoffSeconds = 600
	// maxFailedPods limits the failed Pods that a state holds for their users.
	maxFailedPods = 1000
	// maxPendingSeconds is ten years: only a typing error exceeds it.
	maxPendingSeconds = 10 * 365 * 24 * 3600
)

// options reads the annotations by which users ask for what batch/v1 has no field for. An invalid one is ignored,
// with a message.
func options(j *batchv1.Job) (w Options) {
	ignore := func(name, why string) { w.Ignored = append(w.Ignored, "the annotation "+name+" is ignored: "+why) }
	read := func(name string, least, most int64, neverOnly bool) *int64 {
		text, ok := j.Annotations[name]
		if !ok {
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case neverOnly && j.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
			ignore(name, "restartPolicy is OnFailure, where the kubelet restarts containers")
		case err != nil || n < least || n > most:
			ignore(name, fmt.Sprintf("its value %q is not a whole number from %d to %d", cut(text), least, most))
		default:
			return &n
		}
		return nil
	}
	w.BackoffSeconds = read(v1alpha1.BackoffSecondsAnnotation, 1, maxBackoffSeconds, true)
	if n := read(v1alpha1.FailedPodsLimitAnnotation, 0, maxFailedPods, true); n != nil {
		limit := int(*n)
		w.FailedPodsLimit = &limit
	}
	w.PendingDeadlineSeconds = read(v1alpha1.PendingDeadlineSecondsAnnotation, 1, maxPendingSeconds, false)
	if name := j.Annotations[v1alpha1.PerCompletionEnvAnnotation]; len(name) <= maxName { // else it is no name: see unsupported
		w.Parameters = name
	}
	var why string
	if w.ParentSpan, why = parentSpan(j); why != "" {
		ignore(v1alpha1.TraceparentAnnotation, why)
	}
	for _, name := range []string{v1alpha1.PodTraceparentAnnotation, v1alpha1.PublishFailedValuesAnnotation} {
		if text, ok := j.Annotations[name]; ok && text != "true" && text != "false" {
			ignore(name, fmt.Sprintf("its value %q is neither true nor false", cut(text)))
		}
	}
	w.PublishFailedValues = j.Annotations[v1alpha1.PublishFailedValuesAnnotation] == "true"
	slices.Sort(w.Ignored)
	return w
}

// cut shortens an annotation's value for a message.
func cut(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// Version parses a resourceVersion. Kubernetes promises growing decimal numbers (KEP-5504); 0 stands for any other text.
func Version(s string) uint64 {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// number parses a decimal annotation from 0 to 2^31-1, or returns otherwise.
func number(annotations map[string]string, name string, otherwise int) int {
	n, err := strconv.Atoi(annotations[name])
	if err != nil || n < 0 || n > math.MaxInt32 {
		return otherwise
	}
	return n
}

func orDefault[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
