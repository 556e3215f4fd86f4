package job

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobstream/jobstream/events"
)

// TestAJobStartsWithItsFirstPod: the write of the start may follow the creation of the Pods late. A Job that was suspended starts when it is
// resumed, and not with a Pod of before.
func TestAJobStartsWithItsFirstPod(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	created := func(second int) Row {
		return Row{Pod: events.Pod{UID: types.UID(fmt.Sprint("pod-", second)), Version: 8, Created: now.Add(time.Duration(second) * time.Second)}}
	}
	listed := func(second int) Row {
		r := created(second)
		r.Pod.Version = 7
		return r
	}
	resumed := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}}
	for _, test := range []struct {
		name   string
		status batchv1.JobStatus
		rows   []Row
		want   int // seconds from now
	}{
		{"no Pod yet", batchv1.JobStatus{}, []Row{{}}, 0},
		{"the first of three", batchv1.JobStatus{}, []Row{created(-7), created(-9), created(-8)}, -9},
		{"the clock of the API server is ahead", batchv1.JobStatus{}, []Row{created(2)}, 0},
		{"a Pod that is older than the Job", batchv1.JobStatus{}, []Row{created(-31)}, 0},
		{"as old as the Job", batchv1.JobStatus{}, []Row{created(-30)}, -30},
		{"it was suspended", resumed, []Row{created(-9)}, 0},
		{"a list has found the first one", batchv1.JobStatus{}, []Row{listed(-9), created(-8)}, -8},
	} {
		s := State{Job: events.Job{Created: now.Add(-30 * time.Second), Status: test.status}}
		s.Pods = map[int]Row{}
		s.ListVersions = s.ListVersions.Fold("", "", 7)
		for i, r := range test.rows {
			s.Pods[i] = r
		}
		if got := s.began(now); !got.Equal(now.Add(time.Duration(test.want) * time.Second)) {
			t.Errorf("%s: %v, want %d s", test.name, got.Sub(now), test.want)
		}
	}
}
