package rerun

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/intervals"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

const (
	// indexVariable is the environment variable in which Kubernetes passes the index to a container.
	indexVariable = "JOB_COMPLETION_INDEX"
	// mostIndexes is more than a ConfigMap can hold: each index takes a line of two bytes at least.
	mostIndexes = run.MaxParameters / 2
	// longestNote is the largest number of characters of indexes in a note.
	longestNote = 60
)

// onlyFailed turns j, a copy of old, into a Job of the indexes that did not succeed, and picks the values of these indexes from
// those of old.
//
// The new Job's indexes begin with 0, so its Pods are told the original ones: the ConfigMap has them as the values of the
// variable OriginalIndexVariable, and each variable that passed the index to a container becomes a reference to it. Both
// controllers, jobstream's and the built-in one, keep a variable JOB_COMPLETION_INDEX that a container defines itself.
func onlyFailed(j, old *batchv1.Job, data map[string]string, o Options) (picked map[string]string, notes []string, err error) {
	failed, err := unsuccessful(old, o)
	if err != nil {
		return nil, nil, err
	}
	if picked, err = pick(data, failed); err != nil {
		return nil, nil, fmt.Errorf("the ConfigMap of the Job %s: %w", old.Name, err)
	}
	which := cut(intervals.Of(failed...).String())
	if originals := picked[v1alpha1.OriginalIndexVariable]; originals == "" {
		picked[v1alpha1.OriginalIndexVariable] = lines(failed, strconv.Itoa)
	} else {
		which += ", originally " + cut(strings.ReplaceAll(strings.TrimSuffix(originals, "\n"), "\n", ","))
	}
	size := 0
	for _, list := range picked {
		size += len(list)
	}
	if size > run.MaxParameters {
		return nil, nil, fmt.Errorf("the values of the %d indexes take %d bytes, and a ConfigMap holds %d: leave out --failed-indexes, which runs all of the Job %s again", len(failed), size, run.MaxParameters, old.Name)
	}
	n := int32(len(failed)) //nolint:gosec // at most mostIndexes
	j.Spec.Completions = &n
	j.Spec.Parallelism = ptr.To(min(ptr.Deref(j.Spec.Parallelism, 1), n))
	if j.Spec.MaxFailedIndexes != nil {
		j.Spec.MaxFailedIndexes = ptr.To(min(*j.Spec.MaxFailedIndexes, n))
	}
	notes = append(notes, fmt.Sprintf("%s of the Job %s: %s", count(len(failed)), old.Name, which))
	if j.Spec.SuccessPolicy != nil {
		j.Spec.SuccessPolicy = nil
		notes = append(notes, "spec.successPolicy is left out: all of these indexes must succeed")
	}
	told, err := tellOriginal(&j.Spec.Template.Spec)
	return picked, append(notes, told...), err
}

// unsuccessful returns the indexes to run again. For a failed Job these are all that are not complete, including those that never
// ran.
func unsuccessful(old *batchv1.Job, o Options) ([]int, error) {
	n := indexes(old)
	if n == nil {
		return nil, fmt.Errorf("the Job %s is not Indexed, so it has no failed indexes: leave out --failed-indexes, which runs all of it again", old.Name)
	}
	if by := old.Spec.ManagedBy; o.ManagedBy == "" && ptr.Deref(by, "") != v1alpha1.DefaultManagedBy {
		return nil, fmt.Errorf("the Job %s belongs to %s, which cannot tell Pods their original index: add --managed-by=%s, and jobstream runs the new Job",
			old.Name, ptr.Deref(by, batchv1.JobControllerName), v1alpha1.DefaultManagedBy)
	}
	if builtIn(&o.ManagedBy) {
		return nil, fmt.Errorf("--managed-by=%s: Kubernetes' own controller cannot tell Pods their original index: write --managed-by=%s", o.ManagedBy, v1alpha1.DefaultManagedBy)
	}
	completed, err := intervals.Parse(old.Status.CompletedIndexes)
	if err != nil {
		return nil, fmt.Errorf("the Job %s: status.completedIndexes cannot be read: %w", old.Name, err)
	}
	whole := intervals.Set{}
	if *n > 0 {
		whole = intervals.Set{{First: 0, Last: int(*n) - 1}}
	}
	if succeeded(old) { // by its successPolicy, despite failed indexes
		if whole, err = intervals.Parse(ptr.Deref(old.Status.FailedIndexes, "")); err != nil {
			return nil, fmt.Errorf("the Job %s: status.failedIndexes cannot be read: %w", old.Name, err)
		}
	}
	switch left := whole.Len() - whole.Intersect(completed).Len(); {
	case left == 0:
		return nil, fmt.Errorf("no index of the Job %s has failed: leave out --failed-indexes, which runs all of it again", old.Name)
	case left > mostIndexes:
		return nil, fmt.Errorf("%d indexes of the Job %s did not succeed, and a ConfigMap has room for fewer than %d: leave out --failed-indexes, which runs all of it again", left, old.Name, mostIndexes)
	}
	var out []int
	for _, span := range whole {
		for i := span.First; i <= span.Last; i++ {
			if !completed.Has(i) {
				out = append(out, i)
			}
		}
	}
	return out, nil
}

func succeeded(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
	})
}

// pick selects the lines of those indexes from each list.
func pick(data map[string]string, indexes []int) (map[string]string, error) {
	out := map[string]string{}
	for key, text := range data {
		all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if last := indexes[len(indexes)-1]; last >= len(all) {
			return nil, fmt.Errorf("%s has %d values, and none for index %d: leave out --failed-indexes, or correct the ConfigMap", key, len(all), last)
		}
		out[key] = lines(indexes, func(i int) string { return all[i] })
	}
	return out, nil
}

// lines returns a list in the form that the ConfigMap holds: each value ends with a newline, so that the last may be empty.
func lines(indexes []int, value func(int) string) string {
	var b strings.Builder
	for _, i := range indexes {
		b.WriteString(value(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// tellOriginal makes each variable that held the index hold the original index. The notes name what cannot be changed.
func tellOriginal(p *corev1.PodSpec) (notes []string, err error) {
	for _, containers := range [][]corev1.Container{p.InitContainers, p.Containers} {
		for i := range containers {
			if err := tellContainer(&containers[i]); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range p.Volumes {
		if v.DownwardAPI != nil && slices.ContainsFunc(v.DownwardAPI.Items, func(f corev1.DownwardAPIVolumeFile) bool { return isIndex(f.FieldRef) }) {
			notes = append(notes, fmt.Sprintf("the volume %s shows the index in the new Job, and not the original one: only variables can", v.Name))
		}
	}
	return notes, nil
}

func tellContainer(c *corev1.Container) error {
	const original = "$(" + v1alpha1.OriginalIndexVariable + ")"
	defined := false
	for i, v := range c.Env {
		switch {
		case v.Name == v1alpha1.OriginalIndexVariable:
			return errors.New("the container " + c.Name + " defines the variable " + v.Name + " itself, in which the original index would be: leave out --failed-indexes")
		case v.ValueFrom != nil && isIndex(v.ValueFrom.FieldRef):
			c.Env[i] = corev1.EnvVar{Name: v.Name, Value: original}
		}
		defined = defined || v.Name == indexVariable
	}
	if !defined {
		c.Env = append(c.Env, corev1.EnvVar{Name: indexVariable, Value: original}) // last, as a controller adds its own
	}
	return nil
}

// isIndex reports whether the field is the Pod's index.
func isIndex(f *corev1.ObjectFieldSelector) bool {
	return f != nil && (f.FieldPath == "metadata.annotations['"+batchv1.JobCompletionIndexAnnotation+"']" || f.FieldPath == "metadata.labels['"+batchv1.JobCompletionIndexAnnotation+"']")
}

func count(n int) string {
	if n == 1 {
		return "1 index"
	}
	return strconv.Itoa(n) + " indexes"
}

// cut shortens a list of indexes.
func cut(s string) string {
	if len(s) <= longestNote {
		return s
	}
	return s[:strings.LastIndexByte(s[:longestNote], ',')+1] + "…"
}
