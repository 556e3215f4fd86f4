package events

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// ofEachJob are the labels and annotations of a Pod template that differ between Jobs made of the same template: the API server adds
// the labels, and a ScheduledJob the annotations.
var ofEachJob = []string{
	batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name",
	v1alpha1.ScheduledJobAnnotation, v1alpha1.NominalTimeAnnotation, batchv1.CronJobScheduledTimestampAnnotation,
}

// TemplateHash returns ten hexadecimal digits of the SHA-256 of a Job's Pod template, without what is not its user's. All that leaves
// the trigger of a template is this hash.
//
// It hashes the protobuf encoding, which sorts maps and costs a quarter of JSON: ADR 40 has the numbers, and why no cache is worth its
// while (BenchmarkProjectJob).
func TemplateHash(t *corev1.PodTemplateSpec) string {
	own := *t
	own.Labels, own.Annotations = ofUser(t.Labels), ofUser(t.Annotations)
	b, err := own.Marshal()
	if err != nil { // cannot happen: the object has been decoded
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:5])
}

// ofUser returns the map without what differs between Jobs made of the same template, nil if nothing is left.
func ofUser(all map[string]string) map[string]string {
	out := maps.Clone(all)
	for _, key := range ofEachJob {
		delete(out, key)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
