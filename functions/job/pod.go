package job

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/effect"
)

const (
	// suffixLength is that of generated names in Kubernetes.
	suffixLength = 5
	// suffixes is the number of suffixes: 27^5. No two serials below it share a name within a Job.
	suffixes = 14_348_907
	// suffixStride visits all suffixes before it repeats one, because it is coprime to 3. It lies near the golden section of
	// suffixes, so that the names of successive serials do not look alike.
	suffixStride = 8_868_113
	// suffixInverse undoes the stride: the product of the two is 1 modulo suffixes.
	suffixInverse = 7_925_777
	// maxName is the length of a DNS label: a Pod's name is also its hostname.
	maxName = 63

	completionIndexEnv = "JOB_COMPLETION_INDEX"
)

// PodName returns the name of the Pod with that serial: "<job>-<suffix>", or "<job>-<index>-<suffix>" unless index is
// events.NoIndex. It depends on its arguments only, so a repeated creation finds the Pod that the first one created. Within one
// Job (one UID) it is injective in the serial. The Job's name is cut so that the whole has at most 63 characters.
func PodName(jobName string, uid types.UID, serial, index int) string {
	tail := "-" + suffix(uid, serial)
	if index != events.NoIndex {
		tail = "-" + strconv.Itoa(index) + tail
	}
	return cut(jobName, maxName-len(tail)) + tail
}

// suffix writes (serial * stride + hash of the UID) mod 27^5 in base 27: a bijection of the serials below 27^5, shifted by the
// UID, so that a Job does not collide with the leftover Pods of an earlier Job of the same name.
func suffix(uid types.UID, serial int) string {
	n := (uint64(serial)%suffixes*suffixStride + shift(uid)) % suffixes
	return events.Suffix(n, suffixLength)
}

func shift(uid types.UID) uint64 {
	h := fnv.New64a()
	h.Write([]byte(uid))
	return h.Sum64() % suffixes
}

// serialIn returns the serial that PodName encoded in a name for the Job, with any index; ok is false for any other name.
func serialIn(name, jobName string, uid types.UID) (serial int, ok bool) {
	stem, tail := cutLast(name)
	n := uint64(0)
	for i := range len(tail) {
		n = (n*uint64(len(events.SuffixDigits)) + uint64(strings.IndexByte(events.SuffixDigits, tail[i]))) % suffixes
	}
	serial = int((n + suffixes - shift(uid)) % suffixes * suffixInverse % suffixes)
	if name == PodName(jobName, uid, serial, events.NoIndex) { // also rejects a tail that is not a suffix
		return serial, true
	}
	_, last := cutLast(stem)
	index, err := strconv.Atoi(last)
	return serial, err == nil && name == PodName(jobName, uid, serial, index)
}

// cutLast cuts around the last hyphen.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '-')
	return s[:max(i, 0)], s[i+1:]
}

// cut shortens a name to at most n characters that a hyphen may follow: "a.-b" is not legal where "a-b" is.
func cut(name string, n int) string {
	if len(name) > n {
		name = name[:n]
	}
	return strings.TrimRight(name, "-.")
}

// BuildPod builds the Pod of a CreatePod from the Job's template, as the built-in controller would, and adds the label and the
// serial by which jobstream recognizes it. It does not change the Job, and the Pod shares nothing with it. first are the first
// variables in the environment of the containers, nil for none: FirstEnv.
func BuildPod(j *batchv1.Job, e effect.CreatePod, first []corev1.EnvVar) *corev1.Pod {
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
	if len(first) > 0 {
		giveFirst(p, first)
	}
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
