package controlplane_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A test process that is killed cannot clean up. The kernel does it: its children die with it.
func TestKilledProcessLeavesNoChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties the life of a child to its parent's")
	}
	t.Parallel()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), childEnv+"=1", "TMPDIR="+t.TempDir()) // the folder it orphans goes with the test's
	victim.Stderr = os.Stderr
	if _, err := victim.StdinPipe(); err != nil { // stays open: it ends with this process, if nothing else works
		t.Fatal(err)
	}
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, readErr := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	var running []string
	if readErr == nil {
		running = processesOf(t, dir)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = victim.Wait() // "signal: killed", as wanted
	if readErr != nil {
		t.Fatalf("the victim did not start a control plane: %v", readErr)
	}
	if len(running) != 3 {
		t.Errorf("%d processes ran, want 3: %q", len(running), running)
	}
	eventually(t, 10*time.Second, func() error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("processes left: %q", left)
		}
		return nil
	})
}
