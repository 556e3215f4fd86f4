package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/internal/cluster"
	"github.com/jobstream/jobstream/test/bench/bulk"
	"github.com/jobstream/jobstream/test/e2e/harness"
)

// mostWrong is how many wrong Jobs are named.
const mostWrong = 10

// verify holds the counts of every Job that is there against what they must be: cheap and wrong is no result.
func (b *bench) verify(ctx context.Context, c *bulk.Cluster) error {
	var all []error
	long := 0
	_, err := cluster.Pages(ctx, c.Client.BatchV1().Jobs(metav1.NamespaceAll).List, "", func(page *batchv1.JobList) error {
		for i := range page.Items {
			j := &page.Items[i]
			if isLong(j) {
				long++
			}
			if err := b.check(j); err != nil {
				all = append(all, err)
			}
		}
		return nil
	})
	if long != b.part.jobs {
		all = append(all, fmt.Errorf("%d Jobs run all the time, %d were created", long, b.part.jobs))
	}
	if more := len(all) - mostWrong; more > 0 {
		all = append(all[:mostWrong], fmt.Errorf("%d further Jobs are wrong", more))
	}
	return errors.Join(append(all, err)...)
}

// check returns an error for a Job with wrong counts. A Job that runs all the time has all Pods active, and none has ended; that of a run
// has at most one Pod, which succeeds.
func (b *bench) check(j *batchv1.Job) error {
	s := j.Status
	uncounted := ptr.Deref(s.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	listed := len(uncounted.Succeeded) + len(uncounted.Failed)
	var right bool
	switch {
	case isLong(j):
		right = s.Active == int32(b.part.podsOfJob) && s.Succeeded == 0 && s.Failed == 0 && listed == 0 && !ends(j)
	case harness.Is(j, batchv1.JobComplete):
		right = s.Active == 0 && s.Succeeded == 1 && s.Failed == 0 && listed == 0
	default:
		right = s.Active+s.Succeeded <= 1 && s.Failed == 0 && !harness.Is(j, batchv1.JobFailed)
	}
	if !right {
		return fmt.Errorf("wrong counts: %s/%s: %s", j.Namespace, j.Name, harness.Brief(s))
	}
	return nil
}

// ends reports whether the Job has a condition that it is about to end, or has. Others come and go: that Pods wait for their node, such
// as those of a Job that was created with thousands of others.
func ends(j *batchv1.Job) bool {
	return slices.ContainsFunc([]batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget, batchv1.JobComplete, batchv1.JobFailed},
		func(t batchv1.JobConditionType) bool { return harness.Is(j, t) })
}
