package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// The demo runs to its end, says that all went well, and leaves neither a process nor a folder behind.
func TestDemoEndsWellAndLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir() // where it makes its folders, and by which its processes are known
	p := &harness.Process{Name: "jobstream-dev", Path: programs(t).Dev, Args: []string{"demo"},
		LogFile: filepath.Join(t.TempDir(), "demo.log"), Env: append(os.Environ(), "TMPDIR="+temp)}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	began := time.Now()
	code, err := p.Exit(4 * time.Minute)
	if err != nil {
		t.Fatalf("%v:\n%s", err, p.Printed())
	}
	if code != 0 || !strings.Contains(p.Printed(), "All Jobs ended as expected.") {
		t.Errorf("exit code %d:\n%s", code, p.Printed())
	}
	t.Logf("%.1f s", time.Since(began).Seconds())
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
