package app

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/api/v1alpha1"
)

// jobIn is a Job in that namespace with these conditions.
func jobIn(namespace string, conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Status: batchv1.JobStatus{Conditions: conditions}}
}

func TestJobsByResult(t *testing.T) {
	good, bad := ended(batchv1.JobComplete, "")[0], ended(batchv1.JobFailed, "BackoffLimitExceeded")[0]
	for _, tt := range []struct {
		name          string
		before, after *batchv1.Job
		want          string
	}{
		{"it has begun", jobIn("shop"), jobIn("shop"), `Failed=0 Succeeded=0`},
		{"it completes", jobIn("shop"), jobIn("shop", good), `Failed=0 Succeeded=1`},
		{"it fails", jobIn("shop"), jobIn("shop", bad), `Failed=1 Succeeded=0`},
		{"it has completed before", jobIn("shop", good), jobIn("shop", good), `Failed=0 Succeeded=0`},
		{"it has failed before, and a forged state has it complete", jobIn("shop", bad), jobIn("shop", good), `Failed=0 Succeeded=0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.jobs.StatusWritten(tt.before, tt.after, nil)
			got := strings.NewReplacer(`"} `, "=", "\n", " ").Replace(series(t, m, `jobstream_jobs_finished_total{namespace="shop",result="`))
			if got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// resting is a Job that backs off after so many failures, the last of which ended at that second after noon.
func resting(failures, second int, change ...func(*batchv1.Job)) *batchv1.Job {
	j := jobIn("shop", batchv1.JobCondition{Type: v1alpha1.BackingOffCondition, Status: corev1.ConditionTrue})
	j.Annotations = map[string]string{v1alpha1.BackoffAnnotation: fmt.Sprintf(`{"failures":%d,"last":"2026-11-21T12:00:%02dZ"}`, failures, second)}
	for _, f := range change {
		f(j)
	}
	return j
}

func TestRetryWaits(t *testing.T) {
	over := func(j *batchv1.Job) { j.Status.Conditions[0].Status = corev1.ConditionFalse }
	quick := func(j *batchv1.Job) { j.Annotations[v1alpha1.BackoffSecondsAnnotation] = "2" }
	forged := func(text string) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Annotations[v1alpha1.BackoffAnnotation] = text }
	}
	for _, tt := range []struct {
		name          string
		before, after *batchv1.Job
		want          string // sum and count
	}{
		{"no failure", jobIn("shop"), jobIn("shop"), "0 0"},
		{"the first", jobIn("shop"), resting(1, 5), "10 1"},
		{"the second", resting(1, 5), resting(2, 20), "20 1"},
		{"many", resting(7, 5), resting(20, 20), "600 1"},
		{"the same, written again", resting(1, 5), resting(1, 5), "0 0"},
		{"the next Pod was created", resting(1, 5), resting(1, 5, over), "0 0"},
		{"the first after a success", resting(1, 5, over), resting(1, 20), "10 1"},
		{"the annotation says how long", jobIn("shop"), resting(2, 5, quick), "4 1"},
		{"the Job has failed, nothing is tried again", jobIn("shop"), resting(1, 5, over), "0 0"},
		{"each index waits for itself", jobIn("shop"), resting(0, 5), "0 0"},
		{"a record that is not one", jobIn("shop"), resting(0, 0, forged("{")), "0 0"},
		{"a negative number", jobIn("shop"), resting(0, 0, forged(`{"failures":-3}`)), "0 0"},
		{"a number that is too large", jobIn("shop"), resting(0, 0, forged(`{"failures":9223372036854775807}`)), "600 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := counting()
			m.jobs.StatusWritten(tt.before, tt.after, nil)
			got := strings.ReplaceAll(series(t, m, "jobstream_retry_wait_seconds_sum ")+" "+series(t, m, "jobstream_retry_wait_seconds_count "), "\n", " ")
			if got := strings.TrimSpace(got); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
