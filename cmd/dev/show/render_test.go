package show

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// theShow is a story with a Job in every state.
func theShow() *stage {
	s := newStage("pi", "doomed", "squares", "queue", "late")
	s.Jobs[1].Wants = batchv1.JobFailed
	s.job(0, job("pi", 1, 1, started))
	s.pod(10, aPod("pi", 1, corev1.PodSucceeded, true))
	s.job(30, job("pi", 1, 1, started, counts(0, 1, 0), condition(batchv1.JobComplete, "CompletionsReached")))
	s.pod(35, aPod("pi", 1, corev1.PodSucceeded, false))
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

func TestBars(t *testing.T) {
	s := theShow()
	expectLines(t, s.Bars(at(2600), Style{}),
		"  pi      ####################    1/1  active 0  failed 0    0.0s  Complete",
		"  doomed  --------------------    0/1  active 0  failed 1    2.1s  Waiting, next try in 8 s",
		"  squares ######+++++---------   6/20  active 5  failed 0    1.6s  Running",
		"  queue   ######++++++++++++++    1    active 2  failed 0    1.6s  Running",
		"  late    --------------------    0    active 0  failed 0          not applied yet",
	)
	s.job(11000, job("doomed", 1, 1, started, counts(0, 0, 2), condition(batchv1.JobFailureTarget, "BackoffLimitExceeded")))
	expectLines(t, s.Bars(at(11000), Style{})[1:2],
		"  doomed  --------------------    0/1  active 0  failed 2   10.5s  Ending")
	s.job(11010, job("doomed", 1, 1, started, counts(0, 0, 2), condition(batchv1.JobFailed, "BackoffLimitExceeded")))
	expectLines(t, s.Bars(at(99000), Style{})[1:2],
		"  doomed  --------------------    0/1  active 0  failed 2   10.5s  Failed: BackoffLimitExceeded")
}

// A line that wraps cannot be redrawn in place.
func TestLinesFitTheTerminal(t *testing.T) {
	s := theShow()
	for _, width := range []int{70, 80, 200} {
		for _, line := range append(s.Bars(at(2600), Style{Width: width, Blocks: true}), s.Line(Moment{At: began, Job: "pi", Text: strings.Repeat("long ", 100)}, Style{Width: width})) {
			if n := utf8.RuneCountInString(line); n >= width {
				t.Errorf("a line of %d characters on a terminal of %d: %s", n, width, line)
			}
		}
	}
}

func TestColoursOnlyWhereAllowed(t *testing.T) {
	s := theShow()
	if line := s.Bars(at(2600), Style{})[0]; strings.Contains(line, "\x1b") {
		t.Errorf("escape sequences in %q", line)
	}
	if line := s.Bars(at(2600), Style{Colour: true})[0]; !strings.Contains(line, green+"Complete"+plain) {
		t.Errorf("no colours in %q", line)
	}
}

func TestSummary(t *testing.T) {
	s := theShow()
	expectLines(t, s.Summary(),
		"JOB      RESULT     PODS  SUCCEEDED  FAILED  TOOK   LAST POD TO END  EXPECTED",
		"pi       Complete   1     1          0       30 ms  20 ms            yes",
		"doomed   not ended  1     0          1       -      -                NO: Failed",
		"squares  not ended  0     6          0       -      -                NO: Complete",
		"queue    not ended  0     1          0       -      -                NO: Complete",
		"late     not ended  0     0          0       -      -                NO: Complete",
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

func TestScreenRedrawsBelowWhatStays(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{out: &out, Live: true}
	s.Draw([]string{"a", "b"})
	s.Say("news")
	s.Draw([]string{"A", "B"})
	s.Keep()
	s.Say("end")
	want := "a\nb\n" + "\x1b[2A\x1b[J" + "news\na\nb\n" + "\x1b[2A\x1b[J" + "A\nB\n" + "end\n"
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

func TestScreenThatIsNoTerminalOnlyGrows(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	s.Draw([]string{"a"})
	s.Say("news")
	_, _ = s.Write([]byte("log\n"))
	if out.String() != "news\nlog\n" || s.Style() != (Style{}) {
		t.Errorf("wrote %q in style %+v", out.String(), s.Style())
	}
}
