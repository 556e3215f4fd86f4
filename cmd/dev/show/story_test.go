package show

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobstream/jobstream/events"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at returns the time that many milliseconds after the story began.
func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

// job returns a Job with that many completions (0: a work queue).
func job(name string, completions, parallelism int32, change ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Parallelism: &parallelism, BackoffLimit: ptr.To[int32](1)}}
	if completions > 0 {
		j.Spec.Completions = &completions
	}
	for _, f := range change {
		f(j)
	}
	return j
}

func started(j *batchv1.Job) { j.Status.StartTime = &metav1.Time{Time: began} }

func counts(active, succeeded, failed int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Status.Active, j.Status.Succeeded, j.Status.Failed = active, succeeded, failed }
}

func condition(t batchv1.JobConditionType, reason string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason})
	}
}

// aPod returns a Pod of a Job; its number is its name and its UID.
func aPod(job string, number int, phase corev1.PodPhase, held bool) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", job, number), UID: types.UID(fmt.Sprint(job, number)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: job, Controller: ptr.To(true)}}},
		Status: corev1.PodStatus{Phase: phase},
	}
	if held {
		p.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}
	if phase == corev1.PodFailed {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}
	}
	return p
}

// stage collects the story's lines.
type stage struct {
	*Story
	told []string
}

func newStage(jobs ...string) *stage {
	s := &stage{Story: &Story{Began: began}}
	for _, name := range jobs {
		s.Expect(name, batchv1.JobComplete)
	}
	return s
}

func (s *stage) job(ms int, j *batchv1.Job) { s.tell(s.SawJob(j, at(ms))) }

// finish delivers a JobFinish from the bus.
func (s *stage) finish(ms int, name, reason string, succeeded, failed int32) {
	e := events.JobFinished{Job: events.Reference{Name: name, UID: types.UID(name)}, Result: events.JobSucceeded, Reason: reason, Succeeded: succeeded, Failed: failed, End: began}
	if reason != batchv1.JobReasonCompletionsReached {
		e.Result = events.JobFailed
	}
	s.tell(s.Received(e, at(ms)))
}

func (s *stage) pod(ms int, p *corev1.Pod) { s.tell(s.SawPod(p, false, at(ms))) }

func (s *stage) tell(moments []Moment) {
	for _, m := range moments {
		s.told = append(s.told, strings.TrimSpace(s.Line(m)))
	}
}

func (s *stage) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.told, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(s.told, "\n"), strings.Join(want, "\n"))
	}
}

func TestAJobThatCompletes(t *testing.T) {
	s := newStage("pi")
	s.job(0, job("pi", 1, 1))
	s.job(1, job("pi", 1, 1)) // the watch repeats the result of the creation
	s.job(8, job("pi", 1, 1, started))
	s.pod(12, aPod("pi", 1, corev1.PodPending, true))
	s.pod(30, aPod("pi", 1, corev1.PodRunning, true))
	s.pod(500, aPod("pi", 1, corev1.PodSucceeded, true))
	s.job(510, job("pi", 1, 1, started, condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached")))
	s.finish(512, "pi", "CompletionsReached", 1, 0)
	s.finish(513, "pi", "CompletionsReached", 1, 0) // the bus delivers at least once
	s.pod(515, aPod("pi", 1, corev1.PodSucceeded, true))
	s.job(520, job("pi", 1, 1, started, counts(0, 1, 0), condition(batchv1.JobSuccessCriteriaMet, "CompletionsReached"), condition(batchv1.JobComplete, "CompletionsReached")))
	if s.JobsOver() {
		t.Error("over although a Pod is held")
	}
	s.pod(525, aPod("pi", 1, corev1.PodSucceeded, false))
	s.pod(900, aPod("pi", 1, corev1.PodSucceeded, false))
	s.expect(t,
		"0.000s  pi          applied: 1 completion",
		"0.012s  pi          first Pod created 12 ms later",
		"0.512s  subscriber  JobFinish of pi: Succeeded, 1 succeeded, 0 failed, 0 s",
		"0.525s  pi          complete 20 ms after its last Pod had ended, no finalizer left",
	)
	if !s.JobsOver() || !s.JobOver("pi") || s.JobOver("other") || !s.AsExpected() || s.PodOf("pi") != "pi-1" {
		t.Errorf("over %v, as expected %v, Pod %q", s.JobsOver(), s.AsExpected(), s.PodOf("pi"))
	}
}

func TestAJobThatFails(t *testing.T) {
	s := newStage("doomed")
	s.job(0, job("doomed", 1, 1))
	s.pod(10, aPod("doomed", 1, corev1.PodPending, true))
	s.pod(20, aPod("doomed", 1, corev1.PodFailed, true))
	s.pod(25, aPod("doomed", 1, corev1.PodFailed, false))
	s.pod(10020, aPod("doomed", 2, corev1.PodPending, true))
	s.pod(10030, aPod("doomed", 2, corev1.PodFailed, true))
	s.job(10040, job("doomed", 1, 1, counts(0, 0, 2), condition(batchv1.JobFailureTarget, "BackoffLimitExceeded"), condition(batchv1.JobFailed, "BackoffLimitExceeded")))
	s.tell(s.SawPod(aPod("doomed", 2, corev1.PodFailed, true), true, at(10050))) // a deleted Pod has no finalizer left
	s.expect(t,
		"0.000s  doomed      applied: 1 completion",
		"0.010s  doomed      first Pod created 10 ms later",
		"0.020s  doomed      Pod doomed-1 failed with exit code 3: next try in 10 s",
		"10.020s  doomed      tried again: Pod doomed-2",
		"10.030s  doomed      Pod doomed-2 failed with exit code 3: no try is left",
		"10.050s  doomed      failed for good (BackoffLimitExceeded) 10 ms after its last Pod had ended, no finalizer left",
	)
	if s.AsExpected() {
		t.Error("Failed is taken for the Complete that was expected")
	}
}

func TestForeignJobsAreNotReported(t *testing.T) {
	s := newStage("ours")
	s.job(0, job("theirs", 1, 1))
	s.pod(1, aPod("theirs", 1, corev1.PodFailed, true))
	s.pod(2, &corev1.Pod{})
	s.finish(3, "theirs", "CompletionsReached", 1, 0)
	s.tell(s.Received(events.TickDecided{ScheduledJob: events.Reference{Name: "theirs"}, Verdict: events.Started, Nominal: began, Count: 1}, at(4)))
	s.expect(t)
}
