package show

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// theShow returns a story with a Job in every state.
func theShow() *stage {
	s := newStage("pi", "doomed", "squares", "queue", "late", "doubted")
	s.Jobs[1].Wants = batchv1.JobFailed
	s.job(0, job("pi", 1, 1, started))
	s.pod(10, aPod("pi", 1, corev1.PodSucceeded, true))
	s.job(30, job("pi", 1, 1, started, counts(0, 1, 0), condition(batchv1.JobComplete, "CompletionsReached")))
	s.pod(35, aPod("pi", 1, corev1.PodSucceeded, false))
	s.finish(36, "pi", "CompletionsReached", 1, 0)
	s.job(40, job("doubted", 1, 1, started, counts(0, 1, 0), condition(batchv1.JobComplete, "CompletionsReached")))
	s.finish(41, "doubted", "CompletionsReached", 2, 0)
	s.job(500, job("doomed", 1, 1, started, counts(0, 0, 1)))
	s.pod(600, aPod("doomed", 1, corev1.PodFailed, true))
	s.job(1000, job("squares", 20, 5, started, counts(5, 6, 0)))
	s.job(1000, job("queue", 0, 3, started, counts(2, 1, 0)))
	return s
}

func expectLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSummary(t *testing.T) {
	s := theShow()
	expectLines(t, s.Summary(),
		"JOB      RESULT     PODS  SUCCEEDED  FAILED  TOOK   LAST POD TO END  EXPECTED",
		"pi       Complete   1     1          0       30 ms  20 ms            yes",
		"doomed   not ended  1     0          1       -      -                NO: not Failed",
		"squares  not ended  0     6          0       -      -                NO: not Complete",
		"queue    not ended  0     1          0       -      -                NO: not Complete",
		"late     not ended  0     0          0       -      -                NO: not Complete",
		"doubted  Complete   0     1          0       0 ms   -                NO: differs from JobFinish",
	)
}

func TestSpans(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0 ms": -time.Second, "12 ms": 12*time.Millisecond + 400*time.Microsecond, "1.2 s": 1200 * time.Millisecond,
		"2 s": 2 * time.Second, "10 s": 10100 * time.Millisecond, "5 min": 5 * time.Minute,
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
