// Package rerun builds a new Job from one that has ended: all of it, or the indexes that did not succeed. It has no I/O and no
// clock: the same Job and Options give the same objects.
//
//	rerun.go    Options, and Build
//	copy.go     which fields the new Job takes over
//	indexes.go  which indexes did not succeed, and how their Pods learn their original index
package rerun

import (
	"fmt"
	"regexp"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
	"github.com/jobstream/jobstream/functions/pod"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// Options describe the new Job.
type Options struct {
	// Name is the new Job's name; "" derives one from the old name.
	Name string
	// FailedIndexes reports whether to run only the indexes that did not succeed.
	FailedIndexes bool
	// ManagedBy is the new Job's spec.managedBy; "" takes that of the old one.
	ManagedBy string
	// Suffix ends generated names: letters and digits, different at each call.
	Suffix string
}

// Build builds the objects. old has ended. parameters is the ConfigMap named by NeedsParameters, or nil. The error tells the user
// what cannot be run again, and what to do instead.
func Build(old *batchv1.Job, parameters *corev1.ConfigMap, o Options) (run.Objects, error) {
	if ptr.Deref(old.Spec.ManualSelector, false) {
		return run.Objects{}, fmt.Errorf("the Job %s has a selector of its own (manualSelector), which would select the Pods of both: get the manifest with: kubectl get job %s -n %s -o yaml, give it another selector and matching labels, and create it",
			old.Name, old.Name, old.Namespace)
	}
	j := copied(old)
	if j.Name = o.Name; j.Name == "" {
		j.Name = newName(old, o.Suffix)
	}
	if o.ManagedBy != "" {
		j.Spec.ManagedBy = &o.ManagedBy
	}
	out := run.Objects{Owner: j}
	data, err := values(old, parameters)
	if err != nil {
		return run.Objects{}, err
	}
	if o.FailedIndexes {
		if data, out.Notes, err = onlyFailed(j, old, data, o); err != nil {
			return run.Objects{}, err
		}
	}
	if err := run.CheckName(j.Name, indexes(j)); err != nil {
		return run.Objects{}, err
	}
	if data != nil {
		out.Parameters = run.Parameters(j.Namespace, j.Name+"-env-"+o.Suffix, data)
		j.Annotations = with(j.Annotations, v1alpha1.PerCompletionEnvAnnotation, out.Parameters.Name)
	}
	return out, nil
}

// NeedsParameters returns the name of the ConfigMap that Build needs, or "".
func NeedsParameters(old *batchv1.Job) string {
	if builtIn(old.Spec.ManagedBy) {
		return "" // the built-in controller ignores the annotation
	}
	return old.Annotations[v1alpha1.PerCompletionEnvAnnotation]
}

// values returns the lists of the old Job; nil if it has none.
func values(old *batchv1.Job, parameters *corev1.ConfigMap) (map[string]string, error) {
	if parameters == nil {
		return nil, nil
	}
	if _, err := pod.ReadParameters(parameters); err != nil {
		return nil, fmt.Errorf("the ConfigMap %s, which has the values of the Job %s, cannot be used: %w", parameters.Name, old.Name, err)
	}
	return parameters.Data, nil
}

// builtIn reports whether the built-in controller manages such a Job.
func builtIn(managedBy *string) bool {
	return ptr.Deref(managedBy, batchv1.JobControllerName) == batchv1.JobControllerName
}

// indexes returns the number of indexes of the Job; nil if it is not Indexed.
func indexes(j *batchv1.Job) *int32 {
	if ptr.Deref(j.Spec.CompletionMode, "") != batchv1.IndexedCompletion {
		return nil
	}
	return ptr.To(ptr.Deref(j.Spec.Completions, 0))
}

// infix separates the name of the old Job from the suffix.
const infix = "-rerun-"

// again matches the end of a rerun's name: the next rerun replaces it, so that names do not grow.
var again = regexp.MustCompile(infix + `[a-z0-9]+$`)

// newName returns as much of the old name as fits, with infix and suffix.
func newName(old *batchv1.Job, suffix string) string {
	base := old.Name
	if old.Annotations[v1alpha1.RerunOfAnnotation] != "" {
		base = again.ReplaceAllString(base, "")
	}
	longest := validation.DNS1123LabelMaxLength - len(infix) - len(suffix)
	if n := indexes(old); n != nil {
		longest -= len(fmt.Sprintf("-%d", max(*n-1, 0))) // name and index form a host name
	}
	return strings.TrimRight(base[:min(len(base), longest)], "-.") + infix + suffix
}
