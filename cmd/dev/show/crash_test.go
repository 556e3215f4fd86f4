package show

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// uncounted lists Pods as ended and not counted yet.
func uncounted(pods ...types.UID) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: pods}
	}
}

// crashed returns a Job of four Pods that completes; its reconciler is killed when two are accounted for.
func crashed() *stage {
	s := newStage("harvest")
	s.job(0, job("harvest", 4, 2))
	for i := range 4 {
		s.pod(10+i, aPod("harvest", i, corev1.PodRunning, true))
	}
	s.pod(100, aPod("harvest", 0, corev1.PodSucceeded, true))
	s.pod(101, aPod("harvest", 1, corev1.PodSucceeded, true))
	killed := job("harvest", 4, 2, counts(2, 1, 0), uncounted("harvest1"))
	s.job(110, killed)
	s.tell(s.Crashed(killed, 11, 12, at(120)))
	s.pod(200, aPod("harvest", 2, corev1.PodSucceeded, true))
	s.job(300, job("harvest", 4, 2, counts(2, 2, 0)))
	s.job(2620, job("harvest", 4, 2, counts(1, 2, 0), uncounted("harvest2")))
	s.pod(2650, aPod("harvest", 3, corev1.PodSucceeded, true))
	s.job(2700, job("harvest", 4, 2, counts(0, 4, 0), condition(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)))
	s.finish(2710, "harvest", batchv1.JobReasonCompletionsReached, 4, 0)
	return s
}

func TestCrashIsReported(t *testing.T) {
	s := crashed()
	s.expect(t,
		"0.000s  harvest     applied: 4 completions, 2 at a time",
		"0.010s  harvest     first Pod created 10 ms later",
		"0.120s  reconciler  process 11 got SIGKILL in the middle of harvest: 2 of 4 Pods counted",
		"0.120s  reconciler  process 12 starts in its place",
		"2.620s  reconciler  harvest goes on 2.5 s after the kill: 1 Pod had ended meanwhile, 3 of 4 counted now",
		"2.710s  subscriber  JobFinish of harvest: Succeeded, 4 succeeded, 0 failed, 0 s",
	)
	expectLines(t, s.Crash.Summary(s.Exact(theJob(), witnesses())),
		"kill -9 of the reconciler in the middle of harvest:",
		"  before       2 Pods counted",
		"  meanwhile    1 Pod ended, and no reconciler was there",
		"  after        3 counted by another process, 2.5 s after the kill",
		"  in the end   4 Pods made, 4 containers run, 4 Pods succeeded, 0 failed",
		"  exact        yes: the Job's status counts each of them once, and JobFinish agrees",
	)
}

func theJob(change ...func(*batchv1.Job)) *batchv1.Job {
	return job("harvest", 4, 2, append([]func(*batchv1.Job){counts(0, 4, 0)}, change...)...)
}

func witnesses() (out []Witness) {
	for i := range 4 {
		out = append(out, Witness{Pod: aPod("harvest", i, corev1.PodSucceeded, false), Log: "one of four\n"})
	}
	return out
}

// Errors of a controller show when the counts are compared with the Pods.
func TestCountsThatAreNotExact(t *testing.T) {
	for _, tt := range []struct {
		name     string
		job      *batchv1.Job
		pods     func([]Witness) []Witness
		received int32 // succeeded, according to JobFinish
		want     string
	}{
		{"a Pod counted twice", theJob(counts(0, 5, 0)), nil, 4, "the status says 5 succeeded and 0 failed, the Pods say 4 and 0"},
		{"a Pod not counted", theJob(counts(0, 3, 0)), nil, 4, "3 Pods are accounted for, 4 were made"},
		{"a Pod noted down for ever", theJob(uncounted("harvest3")), nil, 4, "5 Pods are accounted for, 4 were made"},
		{"success and failure mixed up", theJob(counts(0, 3, 1)), nil, 4, "the status says 3 succeeded and 1 failed, the Pods say 4 and 0"},
		{"a Pod too many", theJob(), func(w []Witness) []Witness {
			return append(w, Witness{Pod: aPod("harvest", 4, corev1.PodSucceeded, false)})
		}, 4, "4 Pods were seen, 5 are there in the end"},
		{"a Pod that is gone", theJob(), func(w []Witness) []Witness { return w[1:] }, 4, "4 Pods were seen, 3 are there in the end"},
		{"a container that ran twice", theJob(), func(w []Witness) []Witness { w[2].Log += w[2].Log; return w }, 4, "4 Pods were made, and containers ran 5 times"},
		{"a finalizer left", theJob(), func(w []Witness) []Witness { w[1].Pod.Finalizers = []string{batchv1.JobTrackingFinalizer}; return w }, 4, "Pod harvest-1 still has its finalizer"},
		{"an event that differs", theJob(), nil, 5, "JobFinish and the status differ"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, pods := crashed(), witnesses()
			if tt.pods != nil {
				pods = tt.pods(pods)
			}
			s.Jobs[0].Finish.Succeeded = tt.received
			exact := s.Exact(tt.job, pods)
			if !slices.Contains(exact.Faults, tt.want) {
				t.Errorf("found %q, want %q", exact.Faults, tt.want)
			}
			if text := strings.Join(s.Crash.Summary(exact), "\n"); !strings.Contains(text, "  NOT EXACT    "+tt.want) || strings.Contains(text, "yes:") {
				t.Errorf("the summary says:\n%s", text)
			}
		})
	}
}
