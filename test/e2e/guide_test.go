package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// typed returns the lines of a guide that the user is to type, in order.
func typed(guide string) (lines []string) {
	for line := range strings.Lines(guide) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "kubectl ") {
			lines = append(lines, line)
		}
	}
	return lines
}

// A user without kubectl, plugin and kubeconfig types the commands that "make dev" prints, word for word. The first two lines
// are a finished Indexed Job, and README.md shows them.
func TestDevGuide(t *testing.T) {
	t.Parallel()
	suite.Place(t)
	path := "PATH=" + pathWithoutKubectl(t)
	temp := filepath.Join(t.TempDir(), "it's a folder") // its folders are here, which identifies its processes
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	dev := &harness.Process{Name: "jobstream-dev", Path: programs(t).Dev, Args: []string{"up", "--api-port=0", "--nats-port=0"},
		LogFile: filepath.Join(t.TempDir(), "dev.log"), Env: append(without(os.Environ(), "PATH", "KUBECONFIG"), path, "TMPDIR="+temp)}
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Kill() })
	ctx, cancel := context.WithTimeout(t.Context(), 6*timeout) // a cluster starts, and seven commands run
	defer cancel()
	if _, err := dev.Await(ctx, regexp.MustCompile(`(Ctrl-C stops everything) and leaves nothing behind`)); err != nil {
		t.Fatal(err)
	}
	lines := typed(dev.Printed())
	want := []struct {
		line string // its beginning
		says []string
	}{
		{"export KUBECONFIG=", nil},
		{"kubectl jobstream run greet ", []string{"job.batch/greet created\n", "[0] Hello, Ada!\n", "[1] Hello, Grace!\n", "[2] Hello, Linus!\n", "the Job greet is complete: 3 succeeded, 0 failed"}},
		{"kubectl jobstream", []string{"Jobs: 0 unfinished, 1 complete\n"}},
		{"kubectl jobstream run --help", []string{"--per-completion-env"}},
		{"kubectl apply -f ", []string{"job.batch/squares created\n"}},
		{"kubectl jobstream wait squares", []string{"job.batch/squares is complete: 20 succeeded, 0 failed"}},
		{"kubectl jobstream logs squares", []string{"[0] index 0: the square of 0 is 0\n", "[19] index 19: the square of 19 is 361\n"}},
	}
	if len(lines) != len(want) {
		t.Fatalf("the guide has %d lines, want %d:\n%s", len(lines), len(want), dev.Printed())
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w.line) {
			t.Fatalf("line %d is %q, want %q", i, lines[i], w.line)
		}
		if i == 0 {
			continue
		}
		shell := exec.CommandContext(ctx, "bash", "-c", lines[0]+"\n"+lines[i])
		shell.Dir, shell.Env = t.TempDir(), []string{"HOME=" + t.TempDir(), path}
		out, err := shell.CombinedOutput()
		t.Logf("$ %s\n%s", lines[i], out)
		if err != nil || !hasAll(string(out), w.says) {
			t.Errorf("%s: %v, want %q", lines[i], err, w.says)
		}
	}
	readme, err := os.ReadFile(filepath.Join(harness.Root, "README.md"))
	if err != nil || !strings.Contains(string(readme), lines[1]) {
		t.Errorf("README.md does not contain %s: %v", lines[1], err)
	}
	if err := dev.Stop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, command := range harness.ProcessesWith("TMPDIR=" + temp) {
		t.Errorf("left behind: %s", command)
	}
}

// without removes variables from an environment.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(names, name)
	})
}

// pathWithoutKubectl returns a PATH with the programs of this machine, except kubectl and its plugins.
func pathWithoutKubectl(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		programs, _ := os.ReadDir(folder) // a missing folder has none
		for _, p := range programs {
			if strings.HasPrefix(p.Name(), "kubectl") {
				continue
			}
			if err := os.Symlink(filepath.Join(folder, p.Name()), filepath.Join(dir, p.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	return dir
}
