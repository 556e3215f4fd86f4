package events

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// FieldManager returns the newest record of a field manager that owns the field with that path, such as f:spec, f:suspend; nil if
// there is none. A record is that of the manager's latest write, which may have been about another field.
func FieldManager(all []metav1.ManagedFieldsEntry, path ...string) (found *metav1.ManagedFieldsEntry) {
	for i := range all {
		e := &all[i]
		if e.Subresource == "" && owns(e.FieldsV1, path) && (found == nil || found.Time == nil || e.Time != nil && e.Time.After(found.Time.Time)) {
			found = e
		}
	}
	return found
}

func owns(fields *metav1.FieldsV1, path []string) bool {
	if fields == nil || fields.Size() > maxFields {
		return false
	}
	rest := json.RawMessage(fields.GetRawString())
	for _, step := range path {
		level := map[string]json.RawMessage{}
		if json.Unmarshal(rest, &level) != nil || level[step] == nil {
			return false
		}
		rest = level[step]
	}
	return true
}

// suspender returns which field manager has set spec.suspend, and the queue that the Job waits in, as far as that is known: the
// reconciler resets the managedFields of large Jobs with their first status write.
func suspender(j *batchv1.Job) (manager, queue string) {
	if e := FieldManager(j.ManagedFields, "f:spec", "f:suspend"); e != nil && len(e.Manager) <= maxManager {
		manager = e.Manager
	}
	if label := j.Labels[v1alpha1.QueueLabel]; len(label) <= maxName {
		queue = label
	}
	return manager, queue
}
