// Package rerun makes a new Job of one that has ended: all of it, or the indexes that did not succeed. It does no I/O and has
// no clock: the same Job and Options give the same objects.
//
//	rerun.go    Options, and Build
//	copy.go     what of a Job a new one takes over
//	indexes.go  which indexes did not succeed, and how their Pods find their original index
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
	"github.com/jobstream/jobstream/functions/job"
	"github.com/jobstream/jobstream/internal/kubectl/run"
)

// Options are what the user wants of the new Job.
type Options struct {
	// Name is the new Job's; "" makes one of the old one's.
	Name string
	// FailedIndexes is whether only the indexes run that did not succeed.
	FailedIndexes bool
	// ManagedBy is the new Job's spec.managedBy; "" takes that of the old one.
	ManagedBy string
	// Suffix ends the names that are made: another one each time, of letters and digits.
	Suffix string
}

// Build makes the objects. old has ended. parameters is the ConfigMap that NeedsParameters names; else nil. Its error is for the
// user: what cannot be run again, and what to do instead.
func Build(old *batchv1.Job, parameters *corev1.ConfigMap, o Options) (run.Objects, error) {
	if ptr.Deref(old.Spec.ManualSelector, false) {
		return run.Objects{}, fmt.Errorf("the Job %s has a selector of its own (manualSelector), which would select the Pods of both: write the manifest with: kubectl get job %s -n %s -o yaml, give it another selector with the labels to match, and create it",
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

// NeedsParameters is the name of the ConfigMap that Build needs, "" for none.
func NeedsParameters(old *batchv1.Job) string {
	if builtIn(old.Spec.ManagedBy) {
		return "" // Kubernetes' own controller does not look at the annotation
	}
	return old.Annotations[v1alpha1.PerCompletionEnvAnnotation]
}

// values are the lists of the old Job, nil where it has none.
func values(old *batchv1.Job, parameters *corev1.ConfigMap) (map[string]string, error) {
	if parameters == nil {
		return nil, nil
	}
	if _, err := job.ReadParameters(parameters); err != nil {
		return nil, fmt.Errorf("the ConfigMap %s, which has the values of the Job %s, cannot be used: %w", parameters.Name, old.Name, err)
	}
	return parameters.Data, nil
}

// builtIn reports whether Kubernetes' own controller takes care of such a Job.
func builtIn(managedBy *string) bool {
	return ptr.Deref(managedBy, batchv1.JobControllerName) == batchv1.JobControllerName
}

// indexes is how many indexes the Job has, nil where it is not Indexed.
func indexes(j *batchv1.Job) *int32 {
	if ptr.Deref(j.Spec.CompletionMode, "") != batchv1.IndexedCompletion {
		return nil
	}
	return ptr.To(ptr.Deref(j.Spec.Completions, 0))
}

// infix stands between the name of the old Job and the suffix.
const infix = "-rerun-"

// again is the end of the name of a rerun: another rerun replaces it, so that names do not grow.
var again = regexp.MustCompile(infix + `[a-z0-9]+$`)

// newName is the old name as far as it fits, and what makes it new.
func newName(old *batchv1.Job, suffix string) string {
	base := old.Name
	if old.Annotations[v1alpha1.RerunOfAnnotation] != "" {
		base = again.ReplaceAllString(base, "")
	}
	longest := validation.DNS1123LabelMaxLength - len(infix) - len(suffix)
	if n := indexes(old); n != nil {
		longest -= len(fmt.Sprintf("-%d", max(*n-1, 0))) // with its index it becomes a host name
	}
	return strings.TrimRight(base[:min(len(base), longest)], "-.") + infix + suffix
}
