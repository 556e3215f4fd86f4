package controlplane_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
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
	var running map[int]string
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
		t.Errorf("%d processes ran, want 3: %v", len(running), running)
	}
	eventually(t, 10*time.Second, func() error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("processes left: %v", left)
		}
		return nil
	})
}

// An API server that ends by itself is started again, as the kubelet of a cluster does, and keeps what it had; one that does so again and
// again is reported.
func TestAPIServerThatEndsByItself(t *testing.T) {
	t.Parallel()
	cp, err := controlplane.Start(t.Context(), controlplane.Config{UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer cp.Stop()
	client := clientOf(t, cp)
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), newJob("survivor"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const kills = 4
	for range kills {
		eventually(t, time.Minute, func() error {
			_, err := client.BatchV1().Jobs("default").Get(t.Context(), "survivor", metav1.GetOptions{})
			return err
		})
		select {
		case err := <-cp.Died():
			t.Fatal(err)
		default:
		}
		killAPIServer(t, cp)
	}
	select {
	case err := <-cp.Died():
		if !strings.Contains(err.Error(), "kube-apiserver ended by itself (signal: killed)") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Errorf("an API server that has ended %d times is not reported", kills)
	}
}

// killAPIServer kills the API server as a crash would, and returns when it is gone.
func killAPIServer(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	for id, command := range processesOf(t, cp.Dir()) {
		if !strings.Contains(command, "/kube-apiserver ") {
			continue
		}
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, func() error {
			if _, runs := processesOf(t, cp.Dir())[id]; runs {
				return fmt.Errorf("process %d still runs", id)
			}
			return nil
		})
	}
}
