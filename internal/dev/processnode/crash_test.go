package processnode

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// What a Pod does while the API server is away is reported when it is back.
func TestReportsAfterAnOutage(t *testing.T) {
	w := newWorld(t, Config{})
	gate := filepath.Join(t.TempDir(), "gate")
	w.create(shell("through", "until test -e "+gate+"; do sleep 0.02; done; echo done"))
	w.awaitPhase("through", v1.PodRunning)
	if err := plane.cp.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := plane.cp.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitPhase("through", v1.PodSucceeded)
	w.create(shell("after", "true"))
	w.awaitPhase("after", v1.PodSucceeded)
}

const (
	envVictim = "PROCESSNODE_TEST_VICTIM" // the kubeconfig of a node in a process of its own, which the test kills
	envName   = "PROCESSNODE_TEST_NAME"
)

// TestVictim is no test: it is the node that TestKilledNode kills.
func TestVictim(t *testing.T) {
	kubeconfig := os.Getenv(envVictim)
	if kubeconfig == "" {
		t.Skip("it is a part of TestKilledNode")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	node, err := New(Config{REST: config, Name: os.Getenv(envName), DataDir: os.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// When a node is killed, its containers die with it; what has left their process groups dies when the node is back.
func TestKilledNode(t *testing.T) {
	w := newWorld(t, Config{})
	w.stop() // the victim takes its name: as to the API server, its former life is over
	victim := exec.Command("/proc/self/exe", "-test.run=^TestVictim$", "-test.v")
	dir := t.TempDir()
	victim.Env = append(os.Environ(), envVictim+"="+plane.cp.Kubeconfig(), envName+"="+w.config.Name, "TMPDIR="+dir)
	victim.Stderr = os.Stderr
	victim.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer victim.Process.Kill()
	p, note, read := noting(filepath.Join(t.TempDir(), "notes"), "orphan")
	pids := filepath.Join(t.TempDir(), "pids")
	p.Spec.Containers[0] = step("main", note("run")+"; setsid sh -c 'echo $$$$ >> "+pids+"; exec sleep 600' & echo $$$$ >> "+pids+"; wait")
	w.create(p)
	w.awaitPhase("orphan", v1.PodRunning)
	var all []int
	w.await("orphan", "with two processes", func(*v1.Pod) bool {
		b, _ := os.ReadFile(pids)
		all = nil
		for _, s := range strings.Fields(string(b)) {
			pid, _ := strconv.Atoi(s)
			all = append(all, pid)
		}
		return len(all) == 2
	})
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	w.startNode()
	got := w.awaitPhase("orphan", v1.PodFailed)
	if got.Status.Reason != "NodeRestarted" || read() != "run" {
		t.Errorf("after %q the status is %+v", read(), got.Status)
	}
	for _, pid := range all {
		awaitDead(t, pid)
	}
}
