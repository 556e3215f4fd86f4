// Package v1alpha1 holds every name that jobstream shares with the cluster: the API group, the value of
// spec.managedBy, labels, annotations, finalizers and condition types. A magic string that stands anywhere else is a bug.
package v1alpha1

const (
	// Group is the API group of jobstream's own kinds and the prefix of its labels and annotations.
	Group = "jobstream.dev"

	// DefaultManagedBy is the value of a Job's spec.managedBy that hands the Job to jobstream.
	// It is immutable and at most 63 characters long (Kubernetes 1.36, batch/v1 validation).
	DefaultManagedBy = Group + "/reconciler"

	// ManagedLabel marks every Pod that jobstream made, so that one label selector watches them all.
	ManagedLabel = Group + "/managed"

	// SerialAnnotation carries the ordinal of a Pod within its Job: a decimal number from 0 on that is given once
	// and, as far as the Job's status remembers, never again.
	SerialAnnotation = Group + "/serial"

	// NextSerialAnnotation on a Job is the lowest serial that no Pod of the Job has had. It is written by the same
	// PUT as the status, so that names are not reused when the memory on the bus is lost.
	NextSerialAnnotation = Group + "/next-serial"

	// BackoffAnnotation on a Job is the backoff record that belongs to the failures in its status, as JSON:
	// {"failures":2,"last":"2026-11-21T00:00:00Z"}. Upstream keeps this record in memory and forgets it at a restart.
	BackoffAnnotation = Group + "/backoff"

	// RefusedCondition is True on a Job while the API server refuses what the Job needs done: its Pods by a quota, an
	// admission webhook or an invalid template, a deletion, a release. Its reason and message are the API server's.
	RefusedCondition = Group + "/Refused"

	// UnsupportedCondition is True on a Job that asks for something this version does not do. None of its Pods are started.
	UnsupportedCondition = Group + "/Unsupported"
)
