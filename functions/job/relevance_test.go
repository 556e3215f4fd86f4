package job_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/functions/job"
)

func TestIdle(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ended := now.Add(-2 * time.Hour)
	failed := events.Pod{Phase: events.Failed}
	for _, c := range []struct {
		name   string
		change func(*batchv1.Job)
		limit  *int
		pods   []events.Pod
		want   bool
	}{
		{"it has finished", nil, nil, nil, true},
		{"a Pod of it is not counted", nil, nil, []events.Pod{{Phase: events.Succeeded, Held: true}}, false},
		{"it runs", func(j *batchv1.Job) { j.Status.Conditions = nil }, nil, nil, false},
		{"it has finished since", func(j *batchv1.Job) {
			j.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Minute))
		}, nil, nil, false},
		{"it keeps as many failed Pods as it may", nil, new(1), []events.Pod{failed}, true},
		{"it keeps one too many", nil, new(1), []events.Pod{failed, failed}, false},
		{"one too many is being deleted", nil, new(1), []events.Pod{failed, {Phase: events.Failed, Deleting: true}}, true},
		{"one too many is not selected any more", nil, new(1), []events.Pod{failed, {Phase: events.Failed, Labels: map[string]string{"app": "other"}}}, true},
		{"its time to live is over", func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = new(int32(3600)) }, nil, nil, false},
		{"its time to live is over, and it is being deleted", func(j *batchv1.Job) {
			j.Spec.TTLSecondsAfterFinished, j.DeletionTimestamp = new(int32(3600)), new(metav1.NewTime(now))
		}, nil, nil, true},
		{"its time to live has ended just now", func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = new(int32(2 * 3600)) }, nil, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := &batchv1.Job{Spec: batchv1.JobSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "own"}}}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ended)}}}}
			if c.change != nil {
				c.change(o)
			}
			j := events.ProjectJob(o, events.Claim{Unmanaged: true})
			j.Options.FailedPodsLimit = c.limit
			if got := job.Idle(&j, c.pods, now.Add(-time.Hour), now); got != c.want {
				t.Errorf("idle: %v", got)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	runs := &events.Job{}
	limited := &events.Job{}
	limited.Options.FailedPodsLimit = new(0)
	finished := events.ProjectJob(&batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}, events.Claim{})
	for _, c := range []struct {
		name string
		job  *events.Job
		pod  events.Pod
		want bool
	}{
		{"it runs", runs, events.Pod{Phase: events.Running}, true},
		{"it runs, and its Job is gone", nil, events.Pod{Phase: events.Running}, true},
		{"it has ended, and is not counted", nil, events.Pod{Phase: events.Succeeded, Held: true}, true},
		{"it has ended", runs, events.Pod{Phase: events.Succeeded}, false},
		{"it has ended, and its Job is gone", nil, events.Pod{Phase: events.Failed}, false},
		{"the Job may adopt it", runs, events.Pod{Phase: events.Succeeded, Orphan: true}, true},
		{"the Job has finished and adopts none", &finished, events.Pod{Phase: events.Succeeded, Orphan: true}, false},
		{"it has failed", runs, events.Pod{Phase: events.Failed}, false},
		{"it has failed, and the Job keeps so many", limited, events.Pod{Phase: events.Failed}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := job.Concerns(c.job, c.pod); got != c.want {
				t.Errorf("concerns it: %v", got)
			}
		})
	}
}

// TestRedundant: an observation is redundant only if the reconciler that created the Pod, or removed its finalizer, knows all of it.
func TestRedundant(t *testing.T) {
	created := events.Pod{Name: "pi-x", UID: "x", Serial: 3, Index: events.NoIndex, Phase: events.Pending, Held: true}
	ended := events.Pod{Name: "pi-x", UID: "x", Serial: 3, Index: events.NoIndex, Phase: events.Succeeded}
	for _, c := range []struct {
		name   string
		pod    events.Pod
		change func(*events.Pod)
		age    time.Duration
		want   bool
	}{
		{"it was created", created, nil, 0, true},
		{"it was created, by a clock that is behind", created, nil, -time.Minute, true},
		{"it was scheduled", created, func(p *events.Pod) { p.Scheduled = true }, time.Second, true},
		{"it has waited for long", created, nil, 5 * time.Second, false},
		{"its image is pulled", created, func(p *events.Pod) { p.Waiting = "ContainerCreating" }, 0, false},
		{"no node has room", created, func(p *events.Pod) { p.Waiting = "Unschedulable" }, 0, false},
		{"an init container was restarted", created, func(p *events.Pod) { p.Restarts = 1 }, 0, false},
		{"it runs", created, func(p *events.Pod) { p.Phase = events.Running }, 0, false},
		{"a user has removed its finalizer", created, func(p *events.Pod) { p.Held = false }, 0, false},
		{"it is being deleted", created, func(p *events.Pod) { p.Deleting = true }, 0, false},
		{"a user has taken its owner away", created, func(p *events.Pod) { p.Orphan = true }, 0, false},
		{"a user has changed its labels", created, func(p *events.Pod) { p.Labels = map[string]string{} }, 0, false},
		{"another program has created it", created, func(p *events.Pod) { p.Serial = events.NoSerial }, 0, false},
		{"it has succeeded, and was counted", ended, nil, time.Hour, true},
		{"it has failed, and a user may have removed its finalizer", ended, func(p *events.Pod) { p.Phase = events.Failed }, 0, false},
		{"it has succeeded", ended, func(p *events.Pod) { p.Held = true }, 0, false},
		{"it was counted, and is being deleted", ended, func(p *events.Pod) { p.Deleting = true }, 0, false},
		{"it was counted, and is an orphan", ended, func(p *events.Pod) { p.Orphan = true }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change != nil {
				c.change(&c.pod)
			}
			if got := job.Redundant(c.pod, c.age); got != c.want {
				t.Errorf("redundant: %v", got)
			}
		})
	}
}
