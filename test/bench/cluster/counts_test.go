package main

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

func TestCountsAreChecked(t *testing.T) {
	b := &bench{part: big.scaled(0.1)}
	ofRun := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "s", Controller: ptr.To(true)}}}
	complete := []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	for _, c := range []struct {
		what  string
		job   batchv1.Job
		right bool
	}{
		{"all Pods active", batchv1.Job{Status: batchv1.JobStatus{Active: 10, Ready: ptr.To[int32](10)}}, true},
		{"Pods have waited", batchv1.Job{Status: batchv1.JobStatus{Active: 10, Conditions: []batchv1.JobCondition{
			{Type: v1alpha1.PodsWaitingCondition, Status: corev1.ConditionFalse}}}}, true},
		{"it has ended too soon", batchv1.Job{Status: batchv1.JobStatus{Active: 10, Conditions: complete}}, false},
		{"one too few", batchv1.Job{Status: batchv1.JobStatus{Active: 9}}, false},
		{"one too many", batchv1.Job{Status: batchv1.JobStatus{Active: 11}}, false},
		{"one has ended", batchv1.Job{Status: batchv1.JobStatus{Active: 10, Succeeded: 1}}, false},
		{"a run that begins", batchv1.Job{ObjectMeta: ofRun}, true},
		{"a run", batchv1.Job{ObjectMeta: ofRun, Status: batchv1.JobStatus{Active: 1}}, true},
		{"a run with two Pods", batchv1.Job{ObjectMeta: ofRun, Status: batchv1.JobStatus{Active: 2}}, false},
		{"a run that has ended", batchv1.Job{ObjectMeta: ofRun, Status: batchv1.JobStatus{Succeeded: 1, Conditions: complete}}, true},
		{"one that has counted twice", batchv1.Job{ObjectMeta: ofRun, Status: batchv1.JobStatus{Succeeded: 2, Conditions: complete}}, false},
	} {
		if err := b.check(&c.job); (err == nil) != c.right {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
