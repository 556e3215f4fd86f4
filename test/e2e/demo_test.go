package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// demoLines are lines that only this demo prints, in the order of each story: when the clock strikes beside the Jobs is not for the demo to
// say.
var demoLines = [][]*regexp.Regexp{{
	regexp.MustCompile(`ticker +\d\d:\d\d:\d\d: Started: Job ticker-\w+`),
	regexp.MustCompile(`ticker +\d\d:\d\d:\d\d: Skipped \(Overlap\)`),
	regexp.MustCompile(`verdicts +\d+: .*\d+ Skipped \(Overlap\), \d+ Started`),
	regexp.MustCompile(`exact +yes: each nominal time`),
}, {
	regexp.MustCompile(`subscriber +JobFinish of squares: Succeeded, 20 succeeded, 0 failed, \d+ s`),
	regexp.MustCompile(`reconciler +process \d+ got SIGKILL in the middle of harvest: ([7-9]|1\d) of 20 Pods counted`),
	regexp.MustCompile(`reconciler +harvest goes on .* after the kill: \d+ Pods? had ended meanwhile, \d+ of 20 counted now`),
	regexp.MustCompile(`subscriber +JobFinish of harvest: Succeeded, 20 succeeded, 0 failed, \d+ s`),
	regexp.MustCompile(`in the end +20 Pods made, 20 containers run, 20 Pods succeeded, 0 failed`),
	regexp.MustCompile(`exact +yes: the Job's status counts each of them once, and JobFinish agrees`),
	regexp.MustCompile(`All Jobs ended as expected\.`),
}}

// The demo runs to its end, reports success, and leaves neither a process nor a folder behind. On a terminal it redraws in
// place, and in the end the terminal is as it was.
func TestDemoEndsWellAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	t.Run("AsPlainLines", func(t *testing.T) {
		t.Parallel()
		suite.Place(t)
		temp := t.TempDir()
		p := startDemo(t, temp)
		began := time.Now()
		code, err := p.Exit(4 * time.Minute)
		if err != nil {
			t.Fatalf("%v:\n%s", err, p.Printed())
		}
		checkDemo(t, code, p.Printed())
		t.Logf("%.1f s", time.Since(began).Seconds())
		nothingLeft(t, temp)
	})
	t.Run("OnATerminal", func(t *testing.T) {
		t.Parallel()
		suite.Place(t)
		temp := t.TempDir()
		term := openDemo(t, temp)
		code, err := term.Exit(4 * time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		var seen strings.Builder // a line may scroll by between two shots, but not unseen by both
		drawn := false
		for _, s := range term.Shots() {
			text := strings.Join(s.Lines, "\n")
			seen.WriteString(text + "\n")
			drawn = drawn || strings.Contains(text, "░") && strings.Contains(text, "/20") && strings.Contains(text, " active")
		}
		checkDemo(t, code, seen.String())
		if !drawn || !term.CursorShown() {
			t.Errorf("a bar was drawn: %v; the cursor is shown: %v", drawn, term.CursorShown())
		}
		nothingLeft(t, temp)
	})
}

// However the demo ends, its processes end with it: those of the control plane, the reconciler and the Pods.
func TestDemoThatIsBrokenOffLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	t.Run("ByCtrlC", func(t *testing.T) {
		t.Parallel()
		suite.Place(t)
		temp := t.TempDir()
		term := openDemo(t, temp)
		harness.Until(t, 4*time.Minute, "the reconciler to be killed", func(context.Context) error {
			if text := term.Written(); !strings.Contains(text, "SIGKILL") {
				return fmt.Errorf("the terminal got %q", text)
			}
			return nil
		})
		if err := term.Type("\x03"); err != nil {
			t.Fatal(err)
		}
		code, err := term.Exit(time.Minute)
		if err != nil || code != 1 || !strings.Contains(term.Written(), "interrupted") || !term.CursorShown() {
			t.Errorf("exit code %d, %v, and the terminal got %q", code, err, term.Written())
		}
		nothingLeft(t, temp)
	})
	t.Run("ByFailure", func(t *testing.T) {
		t.Parallel()
		suite.Place(t)
		temp := t.TempDir()
		p := startDemo(t, temp, "--timeout=12s")
		code, err := p.Exit(2 * time.Minute)
		if err != nil || code != 1 || !strings.Contains(p.Printed(), "not over after 12s") {
			t.Errorf("exit code %d, %v:\n%s", code, err, p.Printed())
		}
		nothingLeft(t, temp)
	})
	t.Run("ByKill9", func(t *testing.T) {
		t.Parallel()
		suite.Place(t)
		temp := t.TempDir()
		p := startDemo(t, temp)
		if _, err := p.Await(t.Context(), regexp.MustCompile(`(SIGKILL in the middle of harvest)`)); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		harness.Until(t, time.Minute, "the kernel to have ended its children", func(context.Context) error {
			if left := harness.ProcessesWith("TMPDIR=" + temp); len(left) > 0 {
				return fmt.Errorf("%q are left", left)
			}
			return nil
		})
	})
}

// startDemo starts the demo, whose folders are in temp: its processes are identified by that.
func startDemo(t *testing.T, temp string, flags ...string) *harness.Process {
	t.Helper()
	p := &harness.Process{Name: "jobstream-dev", Path: programs(t).Dev, Args: append([]string{"demo", "--timeout=12m"}, flags...),
		LogFile: filepath.Join(t.TempDir(), "demo.log"), Env: append(os.Environ(), "TMPDIR="+temp)}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// openDemo starts the demo on a terminal.
func openDemo(t *testing.T, temp string) *harness.Terminal {
	t.Helper()
	c := exec.Command(programs(t).Dev, "demo", "--timeout=12m")
	c.Env = append(os.Environ(), "TMPDIR="+temp, "TERM=xterm-256color", "LANG=C.UTF-8")
	term, err := harness.OpenTerminal(c, 120, 40)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	return term
}

func checkDemo(t *testing.T, code int, said string) {
	t.Helper()
	for _, story := range demoLines {
		rest := said
		for _, line := range story {
			at := line.FindStringIndex(rest)
			if at == nil {
				t.Errorf("%s is missing, or out of order", line)
				continue
			}
			rest = rest[at[1]:]
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

func nothingLeft(t *testing.T, temp string) {
	t.Helper()
	left, err := os.ReadDir(temp)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("left behind: %s", filepath.Join(temp, entry.Name()))
	}
	for _, command := range harness.ProcessesWith("TMPDIR=" + temp) {
		t.Errorf("left behind: %s", command)
	}
}
