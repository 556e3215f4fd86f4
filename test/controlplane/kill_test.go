package controlplane_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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
	eventually(t, 5*time.Minute, func() error {
		if left := processesOf(t, dir); len(left) > 0 {
			return fmt.Errorf("processes left: %v", left)
		}
		return nil
	})
}

// panicText is the end of what kube-apiserver v1.36.3 prints at the panic that is forgiven.
const panicText = `panic: runtime error: invalid memory address or nil pointer dereference
k8s.io/kube-openapi/pkg/cached.(*Atomic[...]).Get(0x117e?)
	k8s.io/kube-openapi/pkg/cached/cache.go:264 +0x11
`

// An API server that ends by the known panic is started again and keeps what it had, but not for ever.
func TestAPIServerThatPanics(t *testing.T) {
	t.Parallel()
	cp, client := startWithJob(t)
	const forgiven = 3
	for range forgiven {
		killAPIServer(t, cp, panicText)
		eventually(t, 5*time.Minute, func() error {
			_, err := client.BatchV1().Jobs("default").Get(t.Context(), "survivor", metav1.GetOptions{})
			return err
		})
		select {
		case err := <-cp.Died():
			t.Fatal(err)
		default:
		}
	}
	killAPIServer(t, cp, panicText)
	awaitReport(t, cp)
}

// Any other end is reported: what a client has sent may be its cause.
func TestAPIServerThatEndsByItself(t *testing.T) {
	t.Parallel()
	cp, _ := startWithJob(t)
	killAPIServer(t, cp, "")
	awaitReport(t, cp)
}

// startWithJob starts a control plane that has the Job survivor, and does not mind its death.
func startWithJob(t *testing.T) (*controlplane.ControlPlane, kubernetes.Interface) {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Config{UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := clientOf(t, cp)
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), newJob("survivor"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return cp, client
}

func awaitReport(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	select {
	case err := <-cp.Died():
		if !strings.Contains(err.Error(), "kube-apiserver ended by itself (signal: killed)") {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("its end is not reported")
	}
}

// killAPIServer kills the API server, and returns when it is gone. The text is the last that it has printed.
func killAPIServer(t *testing.T, cp *controlplane.ControlPlane, text string) {
	t.Helper()
	for id, command := range processesOf(t, cp.Dir()) {
		if !strings.Contains(command, "/kube-apiserver ") {
			continue
		}
		log, err := os.OpenFile(cp.LogFile("kube-apiserver"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		stopped := syscall.Kill(id, syscall.SIGSTOP) // so that it prints nothing after the text
		_, err = log.WriteString(text)
		if err := errors.Join(stopped, err, syscall.Kill(id, syscall.SIGKILL)); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Minute, func() error {
			if _, runs := processesOf(t, cp.Dir())[id]; runs {
				return fmt.Errorf("process %d still runs", id)
			}
			return nil
		})
	}
}
