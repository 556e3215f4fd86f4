package job_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

// TestTheDeadlineOfAResumedJobStartsAnew, also where another controller has suspended it and has left its old startTime in the
// status. Transcripts: active_deadline*.
func TestTheDeadlineOfAResumedJobStartsAnew(t *testing.T) {
	w := newWorld(t, job.DefaultLimits(), func(j *events.Job) {
		j.ActiveDeadlineSeconds = new(int64(30))
		j.Status.StartTime = &metav1.Time{Time: time.Date(2025, 12, 31, 0, 0, 0, 0, time.UTC)}
		j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: "True"}}
	})
	resumed := w.now
	w.wake()
	for _, c := range []struct {
		at   time.Duration
		over bool
	}{{0, false}, {29 * time.Second, false}, {30 * time.Second, true}} {
		w.wait(resumed.Add(c.at).Sub(w.now))
		if cond, over := w.job().Condition(batchv1.JobFailureTarget); over != c.over {
			t.Errorf("%v after it was resumed, it is over: %v %s", c.at, over, cond.Reason)
		}
	}
	if start := w.job().Status.StartTime; !start.Time.Equal(resumed) {
		t.Errorf("it started at %v, resumed at %v", start, resumed)
	}
}
