package draw

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/test/oracle"
)

// The Pod template's containers, which policies may name.
const (
	MainContainer = "main"
	SideContainer = "side"
	InitContainer = "init"
)

// Job draws a Job that a user may have created, as the API server shows it. It has no status.
func Job(t *rapid.T) *batchv1.Job {
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi", UID: "job-1", ResourceVersion: "1000", Generation: 1,
			CreationTimestamp: metav1.NewTime(Epoch), Annotations: map[string]string{}},
		Spec: batchv1.JobSpec{
			Parallelism: new(number(t, 0, 5, "parallelism")), Completions: maybe(t, 0, 6, "completions"),
			CompletionMode: new(batchv1.NonIndexedCompletion),
			BackoffLimit:   new(number(t, 0, 6, "backoffLimit")), PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
			Suspend: new(chance(t, 5, "suspend")), ManagedBy: new(v1alpha1.DefaultManagedBy), Template: template(t),
		},
	}
	if chance(t, 3, "podReplacementPolicy Failed") {
		j.Spec.PodReplacementPolicy = new(batchv1.Failed)
	}
	if chance(t, 4, "activeDeadlineSeconds") {
		j.Spec.ActiveDeadlineSeconds = new(5 * int64(rapid.IntRange(0, 100).Draw(t, "deadline")))
	}
	if rapid.Bool().Draw(t, "indexed") {
		index(t, j)
	}
	if j.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyNever && chance(t, 3, "podFailurePolicy") {
		j.Spec.PodFailurePolicy, j.Spec.PodReplacementPolicy = PodFailurePolicy(t, j.Spec.BackoffLimitPerIndex != nil), new(batchv1.Failed)
	}
	if chance(t, 8, "manualSelector") {
		j.Spec.ManualSelector, j.Spec.Selector = new(true), &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pi"}}
		j.Spec.Template.Labels = map[string]string{"app": "pi"}
	}
	out, err := oracle.Stored(j)
	if err == nil {
		err = oracle.Create(j)
	}
	if err != nil {
		t.Fatalf("this draws a Job that the API server refuses: %v", err)
	}
	return out
}

func template(t *rapid.T) corev1.PodTemplateSpec {
	restart := corev1.RestartPolicyNever
	if chance(t, 4, "on failure") {
		restart = corev1.RestartPolicyOnFailure
	}
	container := func(name string) corev1.Container { return corev1.Container{Name: name, Image: "busybox"} }
	sidecar := container(InitContainer)
	if rapid.Bool().Draw(t, "sidecar") {
		sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: restart,
		Containers: []corev1.Container{container(MainContainer), container(SideContainer)}, InitContainers: []corev1.Container{sidecar}}}
}

// index makes the Job Indexed, with what only such Jobs may have.
func index(t *rapid.T, j *batchv1.Job) {
	s := &j.Spec
	s.CompletionMode = new(batchv1.IndexedCompletion)
	if s.Completions == nil {
		s.Completions = new(number(t, 0, 6, "indexed completions"))
	}
	if chance(t, 3, "elastic") {
		s.Parallelism = new(*s.Completions)
	}
	if chance(t, 2, "backoffLimitPerIndex") {
		s.BackoffLimitPerIndex = new(number(t, 0, 2, "limit per index"))
		s.MaxFailedIndexes = maybe(t, 0, int(*s.Completions), "maxFailedIndexes")
		if rapid.Bool().Draw(t, "no backoffLimit") {
			s.BackoffLimit = new(int32(1<<31 - 1))
		}
	}
	if *s.Completions > 0 && chance(t, 3, "successPolicy") {
		s.SuccessPolicy = SuccessPolicy(t, int(*s.Completions))
	}
}

// PodFailurePolicy draws one that the API server accepts for the containers of Job.
func PodFailurePolicy(t *rapid.T, perIndex bool) *batchv1.PodFailurePolicy {
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount,
		batchv1.PodFailurePolicyActionFailJob}
	if perIndex {
		actions = append(actions, batchv1.PodFailurePolicyActionFailIndex)
	}
	p := &batchv1.PodFailurePolicy{}
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		r := batchv1.PodFailurePolicyRule{Action: rapid.SampledFrom(actions).Draw(t, "action")}
		if rapid.Bool().Draw(t, "by exit code") {
			r.OnExitCodes = onExitCodes(t)
		} else {
			r.OnPodConditions = onPodConditions(t)
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

func onExitCodes(t *rapid.T) *batchv1.PodFailurePolicyOnExitCodesRequirement {
	r := &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn}
	if name := rapid.SampledFrom([]string{"", MainContainer, SideContainer, InitContainer}).Draw(t, "container"); name != "" {
		r.ContainerName = &name
	}
	values := map[int32]bool{}
	if rapid.Bool().Draw(t, "not in") {
		r.Operator = batchv1.PodFailurePolicyOnExitCodesOpNotIn
		values[0] = rapid.Bool().Draw(t, "nor 0")
	}
	for range 2 {
		values[rapid.SampledFrom([]int32{-1, 1, 2, 3, 4}).Draw(t, "code")] = true
	}
	for code := int32(-1); code < 5; code++ {
		if values[code] {
			r.Values = append(r.Values, code)
		}
	}
	return r
}

func onPodConditions(t *rapid.T) (out []batchv1.PodFailurePolicyOnPodConditionsPattern) {
	for range rapid.IntRange(1, 2).Draw(t, "patterns") {
		out = append(out, batchv1.PodFailurePolicyOnPodConditionsPattern{
			Type:   rapid.SampledFrom(podConditions).Draw(t, "condition"),
			Status: rapid.SampledFrom(conditionStatuses).Draw(t, "status"),
		})
	}
	return out
}

// SuccessPolicy draws one that the API server accepts for so many completions.
func SuccessPolicy(t *rapid.T, completions int) *batchv1.SuccessPolicy {
	p := &batchv1.SuccessPolicy{}
	for range rapid.IntRange(1, 3).Draw(t, "rules") {
		r, most := batchv1.SuccessPolicyRule{}, completions
		if rapid.Bool().Draw(t, "indexes") {
			set := subset(t, completions, "succeededIndexes").With(rapid.IntRange(0, completions-1).Draw(t, "at least"))
			r.SucceededIndexes, most = new(set.String()), set.Len()
		}
		if r.SucceededIndexes == nil || rapid.Bool().Draw(t, "count") {
			r.SucceededCount = new(number(t, 1, most, "succeededCount"))
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// Edited returns the Job after allowed changes to its spec by users.
func Edited(t *rapid.T, j *batchv1.Job) *batchv1.Job {
	out := j.DeepCopy()
	out.Generation++
	if chance(t, 3, "resume or suspend") {
		out.Spec.Suspend = new(!*j.Spec.Suspend)
	}
	if chance(t, 3, "other deadline") {
		out.Spec.ActiveDeadlineSeconds = new(5 * int64(rapid.IntRange(0, 100).Draw(t, "deadline")))
	}
	n := number(t, 0, 6, "new parallelism")
	switch {
	case chance(t, 2, "scale"):
		out.Spec.Parallelism = &n
	case *j.Spec.CompletionMode == batchv1.IndexedCompletion && chance(t, 2, "stretch"):
		out.Spec.Parallelism, out.Spec.Completions = &n, &n
	}
	if oracle.Update(j, out) != nil {
		return j // completions may be below maxFailedIndexes, or below the indexes that a successPolicy names
	}
	return out
}

// subset draws some of the numbers below n.
func subset(t *rapid.T, n int, label string) (out intervals.Set) {
	for i := range n {
		if rapid.Bool().Draw(t, fmt.Sprintf("%s has %d", label, i)) {
			out = out.With(i)
		}
	}
	return out
}

// Options adds annotations of users, valid or not.
func Options(t *rapid.T, j *batchv1.Job) {
	option := func(name string, values ...string) {
		if v := rapid.SampledFrom(append(values, "")).Draw(t, name); v != "" {
			metav1.SetMetaDataAnnotation(&j.ObjectMeta, name, v)
		}
	}
	option(v1alpha1.BackoffSecondsAnnotation, "1", "60", "600", "soon")
	option(v1alpha1.FailedPodsLimitAnnotation, "0", "1", "3", "-1")
	option(v1alpha1.PendingDeadlineSecondsAnnotation, "5", "300")
	if *j.Spec.CompletionMode == batchv1.IndexedCompletion {
		option(v1alpha1.PerCompletionEnvAnnotation, "", "", "values")
		option(v1alpha1.PublishFailedValuesAnnotation, "true", "false", "")
	}
}
