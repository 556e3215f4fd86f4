package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// update rewrites the recording in docs/.
var update = flag.Bool("update", false, "write recordings into docs/")

// recording is in docs/.
const recording = "kubectl-run-wait.md"

// onTerminal runs a user's line on a terminal of 80 columns and 24 lines.
func (u *terminal) onTerminal(line string, env ...string) *harness.Terminal {
	u.Helper()
	c := exec.Command("bash", "-c", u.here(line))
	c.Dir, c.Env = u.dir, append(append(slices.Clone(u.env), "TERM=xterm-256color", "LANG=C.UTF-8"), env...)
	t, err := harness.OpenTerminal(c, 80, 24)
	if err != nil {
		u.Fatal(err)
	}
	return t
}

// head is the line of the recorded Job.
var (
	head    = regexp.MustCompile(`^render  [█▒░]{8,30} +(\d+)/200(?: +\d+ active)? +\d+ failed(?: +[\d.]+/(?:s|min))?(?: +\S+ left)?(?: +\S+)? +(Waiting|Running|Completing|Complete)$`)
	mapRow  = regexp.MustCompile(`^ +(0|50|100|150) [█▒·!]{50}$`)
	legends = regexp.MustCompile(`^  [█▒!·] (complete|running|to be tried again|waiting)(  [█▒!·] (complete|running|to be tried again|waiting))*$`)
)

// frame is the part of a screen that is redrawn.
type frame struct {
	lines     []string
	succeeded int
	over      bool
}

// readFrame finds the frame on a screen. A frame that is torn, or contains parts of an older one, is an error.
func readFrame(lines []string) (f frame, found bool, err error) {
	begin := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "render ") })
	if begin < 0 {
		return f, false, nil
	}
	f.lines = lines[begin:]
	m := head.FindStringSubmatch(f.lines[0])
	if m == nil {
		return f, true, fmt.Errorf("not the head of a frame: %q", f.lines[0])
	}
	f.succeeded, _ = strconv.Atoi(m[1])
	f.over = m[2] == "Complete"
	rows, complete, legend := 0, 0, 0
	for _, line := range f.lines[1:] {
		switch {
		case mapRow.MatchString(line):
			rows++
			complete += strings.Count(line, "█")
		case legends.MatchString(line):
			legend++
		case strings.HasPrefix(line, "  to be tried again: "), strings.HasPrefix(line, "the Job render is complete: 200 succeeded, "),
			strings.HasPrefix(line, "  BackingOff: PodFailed: "): // only on a slow machine does the backoff last long enough for the condition
		default:
			return f, true, fmt.Errorf("not part of a frame: %q", line)
		}
	}
	switch {
	case f.over && (rows != 0 || legend != 0 || f.succeeded != 200):
		return f, true, fmt.Errorf("complete with %d of 200, %d rows and %d legends", f.succeeded, rows, legend)
	case !f.over && (rows != 4 || legend != 1 || complete != f.succeeded):
		return f, true, fmt.Errorf("%d rows, %d legends, and %d indexes that are complete where %d are counted", rows, legend, complete, f.succeeded)
	}
	return f, true, nil
}

// A session of "run --wait" with 200 completions, one of which fails once, on a terminal: each screen on the way is a complete
// and consistent frame, and in the end the terminal is as it was. docs/ has some of the frames.
func TestKubectlRunWaitOnATerminal(t *testing.T) {
	t.Parallel()
	u := open(t)
	once := filepath.Join(t.TempDir(), "once")
	const line = `kubectl jobstream run render --image=busybox --completions=200 --parallelism=20 --backoff-seconds=2 --wait -- `
	script := `sleep 1; test $JOB_COMPLETION_INDEX = 77 && mkdir "` + once + `" 2>/dev/null && exit 1; true`
	term := u.onTerminal(line + `sh -c '` + script + `'`)
	code, err := term.Exit(timeout)
	if err != nil {
		t.Fatal(err)
	}
	shots := term.Shots()
	last := shots[len(shots)-1]
	if said := strings.Join(last.Lines, "\n"); code != 0 || !strings.Contains(said, "the Job render is complete: 200 succeeded, 1 failed, in ") {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	if !term.CursorShown() {
		t.Error("the cursor is hidden in the end")
	}
	for what, bytes := range map[string]string{"asks the terminal": "\x1b[?u", "asks for modes": "$p", "asks for the cursor": "\x1b[6n"} {
		if strings.Contains(term.Written(), bytes) {
			t.Errorf("it %s, and no program reads the answer", what)
		}
	}
	if !strings.Contains(term.Written(), "\x1b[32m") {
		t.Error("there are no colours")
	}
	var frames []harness.Shot
	before, again := 0, false
	for _, s := range shots {
		f, found, err := readFrame(s.Lines)
		if err != nil {
			t.Errorf("after %v: %v:\n%s", s.After, err, strings.Join(s.Lines, "\n"))
		}
		if !found {
			continue
		}
		if f.succeeded < before {
			t.Errorf("after %v: %d are complete, and %d were", s.After, f.succeeded, before)
		}
		// Seen only if its failure is later than the last success: otherwise Kubernetes retries it at once.
		tried := strings.Contains(strings.Join(f.lines, "\n"), "to be tried again: 77")
		if n := len(frames); n > 0 && f.over && f.succeeded == before {
			frames = frames[:n-1] // a repetition, and what follows it
		}
		if step := 50; len(frames) == 0 || f.succeeded/step > before/step || tried && !again || f.over {
			frames = append(frames, harness.Shot{After: s.After, Lines: s.Lines})
		}
		again = again || tried
		before = f.succeeded
	}
	if before != 200 || len(frames) < 3 {
		t.Errorf("%d frames up to %d", len(frames), before)
		for _, s := range shots {
			t.Logf("after %v:\n%s", s.After, strings.Join(s.Lines, "\n"))
		}
	}
	record(t, line+`sh -c '…'`, frames)
}

// record writes the recording, or checks that the existing one shows current frames.
func record(t *testing.T, line string, frames []harness.Shot) {
	t.Helper()
	path := filepath.Join(harness.Root, "docs", recording)
	if *update {
		var b strings.Builder
		fmt.Fprintf(&b, "# A session\n\nRecorded by `TestKubectlRunWaitOnATerminal` on a real control plane, with a terminal of 80 columns and 24 lines: 200\n"+
			"indexes, 20 at a time, of which number 77 fails once. The screen is redrawn in place; a real terminal shows colours.\n\n```\n$ %s\n```\n", line)
		for _, f := range frames {
			fmt.Fprintf(&b, "\nAfter %.1f s:\n\n```\n%s\n```\n", f.After.Seconds(), strings.Join(f.Lines, "\n"))
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i, block := range strings.Split(string(text), "```") {
		if i%2 == 0 {
			continue
		}
		_, found, err := readFrame(strings.Split(strings.TrimSpace(block), "\n"))
		if err != nil {
			t.Errorf("docs/%s shows what the program does not: %v: record it anew with -args -update", recording, err)
		}
		if found {
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("docs/%s has %d frames", recording, seen)
	}
}

// Ctrl-C restores the terminal, and the Job continues.
func TestKubectlWatchIsInterrupted(t *testing.T) {
	t.Parallel()
	u := open(t)
	gate := filepath.Join(t.TempDir(), "go")
	u.succeeds(`kubectl jobstream run render --image=busybox --completions=12 --parallelism=3 -- sh -c 'until [ -e "` + gate + `" ]; do sleep 0.2; done'`)
	term := u.onTerminal("kubectl jobstream watch render", "NO_COLOR=1")
	harness.Until(t, timeout, "a map of the indexes", func(context.Context) error {
		shots := term.Shots()
		if len(shots) == 0 || !strings.Contains(strings.Join(shots[len(shots)-1].Lines, "\n"), "   0 ▒▒▒·········") {
			return fmt.Errorf("the terminal got %q", term.Written())
		}
		return nil
	})
	if err := term.Type("\x03"); err != nil {
		t.Fatal(err)
	}
	code, err := term.Exit(timeout)
	if err != nil || code != 130 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if !term.CursorShown() {
		t.Error("the cursor is hidden")
	}
	if written := term.Written(); strings.Contains(written, "\x1b[3") || !strings.Contains(written, "error: interrupted: the Jobs go on") {
		t.Errorf("colours despite NO_COLOR, or no message: %q", written)
	}
	touch(t, gate)
	u.AwaitEnd("render", batchv1.JobComplete, timeout)
}

// Logs are in the order of indexes, of the requested indexes, of failed attempts, or as they come.
func TestKubectlLogs(t *testing.T) {
	t.Parallel()
	u := open(t)
	once := filepath.Join(t.TempDir(), "once")
	gate := filepath.Join(t.TempDir(), "go")
	u.succeeds(`kubectl jobstream run say --image=busybox --completions=3 --backoff-seconds=1 -- sh -c '
		test $JOB_COMPLETION_INDEX = 1 && mkdir "` + once + `" 2>/dev/null && echo it breaks && exit 1
		until [ -e "` + gate + `" ]; do sleep 0.1; done
		echo my index is $JOB_COMPLETION_INDEX'`)
	follow := exec.CommandContext(t.Context(), "bash", "-c", "kubectl jobstream logs say -f")
	var followed strings.Builder
	follow.Dir, follow.Env, follow.Stdout = u.dir, u.env, &followed
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	u.Await("say", timeout, "to have a failed Pod", func(j *batchv1.Job) bool { return j.Status.Failed == 1 })
	if got := u.succeeds("kubectl jobstream logs say --failed"); got != "it breaks\n" {
		t.Errorf("of the Pod that failed: %q", got)
	}
	touch(t, gate)
	u.AwaitEnd("say", batchv1.JobComplete, timeout)
	if err := follow.Wait(); err != nil {
		t.Errorf("logs -f: %v", err)
	}
	const want = "[0] my index is 0\n[1] it breaks\n[1] my index is 1\n[2] my index is 2\n"
	if got := strings.Split(followed.String(), "\n"); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(strings.Split(want, "\n")))) {
		t.Errorf("as they came: %q", got)
	}
	if got := u.succeeds("kubectl jobstream logs say"); got != want {
		t.Errorf("all: %q, want %q", got, want)
	}
	if got := u.succeeds("kubectl jobstream logs job/say --index=0,2"); got != "[0] my index is 0\n[2] my index is 2\n" {
		t.Errorf("of two indexes: %q", got)
	}
	if got := u.succeeds("kubectl jobstream wait say"); !strings.HasPrefix(got, "job.batch/say is complete: 3 succeeded, 1 failed, in ") {
		t.Errorf("wait: %q", got)
	}
}
