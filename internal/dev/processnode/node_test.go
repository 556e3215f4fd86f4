package processnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNodeRegisters(t *testing.T) {
	w := newWorld(t, Config{Labels: map[string]string{"zone": "here"}})
	n, err := w.client.CoreV1().Nodes().Get(t.Context(), w.config.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	}
	if !ready || n.Labels["zone"] != "here" || n.Labels[v1.LabelHostname] != w.config.Name || n.Status.Capacity.Pods().Value() != 110 {
		t.Errorf("node is %+v %+v", n.Labels, n.Status)
	}
	deadline := time.Now().Add(timeout)
	for {
		_, err := w.client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(t.Context(), w.config.Name, metav1.GetOptions{})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no lease: %v", err)
		}
		pause(t.Context(), 50*time.Millisecond)
	}
}

func TestPodSucceeds(t *testing.T) {
	w := newWorld(t, Config{})
	p := shell("hello", `echo 'hello $(NAME) from $(POD) $$(POD)'; echo oops >&2; pwd; env`)
	p.Labels = map[string]string{"app": "x"}
	p.Spec.Containers[0].Env = []v1.EnvVar{
		{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		{Name: "APP", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}},
		{Name: "NAME", Value: "$(POD)-$(APP)"},
	}
	t.Setenv("JOBSTREAM_SECRET_OF_THE_NODE", "leaked")
	w.create(p)
	got := w.awaitPhase("hello", v1.PodSucceeded)
	s := mainState(t, got)
	if s.ExitCode != 0 || s.Reason != "Completed" || s.StartedAt.IsZero() || s.FinishedAt.IsZero() {
		t.Errorf("state is %+v", s)
	}
	if got.Status.PodIP != "127.0.0.1" || got.Status.StartTime == nil || got.Spec.NodeName != w.config.Name {
		t.Errorf("status is %+v", got.Status)
	}
	log := w.logs("hello", &v1.PodLogOptions{})
	for _, want := range []string{"hello hello-x from hello $(POD)\n", "oops\n", "HOSTNAME=hello\n", "NAME=hello-x\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "leaked") {
		t.Errorf("the node's environment leaks:\n%s", log)
	}
}

func TestPodFails(t *testing.T) {
	w := newWorld(t, Config{})
	w.create(shell("code", "exit 42"))
	w.create(shell("signal", "kill -TERM $$$$"))
	missing := shell("missing", "")
	missing.Spec.Containers[0].Command = []string{"no-such-program-here"}
	w.create(missing)
	image := shell("image", "")
	image.Spec.Containers[0].Command = nil
	w.create(image)

	if s := mainState(t, w.awaitPhase("code", v1.PodFailed)); s.ExitCode != 42 || s.Reason != "Error" {
		t.Errorf("state is %+v", s)
	}
	if s := mainState(t, w.awaitPhase("signal", v1.PodFailed)); s.ExitCode != 143 || s.Signal != 15 {
		t.Errorf("state is %+v", s)
	}
	if s := mainState(t, w.awaitPhase("missing", v1.PodFailed)); s.ExitCode != 128 || s.Reason != "StartError" ||
		!strings.Contains(s.Message, "install no-such-program-here") {
		t.Errorf("state is %+v", s)
	}
	if s := mainState(t, w.awaitPhase("image", v1.PodFailed)); !strings.Contains(s.Message, "give the container main a command") {
		t.Errorf("state is %+v", s)
	}
}

func TestDeletionAsksThenKills(t *testing.T) {
	w := newWorld(t, Config{})
	w.create(shell("polite", `trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done`))
	stubborn := shell("stubborn", `trap '' TERM; echo up; while :; do sleep 0.05; done`)
	stubborn.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
	stubborn.Finalizers = []string{"example.com/hold"}
	w.create(stubborn)
	w.awaitPhase("polite", v1.PodRunning)
	w.awaitPhase("stubborn", v1.PodRunning)
	w.awaitLog("polite", "up\n")
	w.awaitLog("stubborn", "up\n")

	w.delete("polite", metav1.DeleteOptions{})
	w.awaitGone("polite")
	w.delete("stubborn", metav1.DeleteOptions{})
	got := w.await("stubborn", "Failed and released by the node", func(p *v1.Pod) bool {
		return p.Status.Phase == v1.PodFailed && *p.DeletionGracePeriodSeconds == 0
	})
	if s := mainState(t, got); s.ExitCode != 137 {
		t.Errorf("state is %+v", s)
	}
	got.Finalizers = nil
	if _, err := w.client.CoreV1().Pods(w.namespace).Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.awaitGone("stubborn")
}

// awaitLog polls a container's log until it has the text.
func (w *world) awaitLog(name, want string) {
	w.Helper()
	deadline := time.Now().Add(timeout)
	for log := ""; time.Now().Before(deadline); pause(w.Context(), 10*time.Millisecond) {
		if log = w.logs(name, &v1.PodLogOptions{}); strings.Contains(log, want) {
			return
		}
	}
	w.Fatalf("the log of %s never said %q", name, want)
}

func TestForcedDeletionKills(t *testing.T) {
	w := newWorld(t, Config{})
	file := filepath.Join(t.TempDir(), "pid")
	w.create(shell("forced", `trap '' TERM; echo $$$$ > `+file+`; while :; do sleep 0.02; done`))
	w.awaitPhase("forced", v1.PodRunning)
	pid := 0
	w.await("forced", "up", func(*v1.Pod) bool { pid = readPID(file); return pid > 0 })
	w.delete("forced", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	w.awaitGone("forced")
	awaitDead(t, pid)
}

// readPID reads a process id that a container has written; 0 where it has not yet.
func readPID(file string) int {
	b, _ := os.ReadFile(file)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// awaitDead polls until the process has ended.
func awaitDead(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !dead(pid); pause(t.Context(), 10*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d still runs", pid)
		}
	}
}

// dead reports whether the process has ended; a zombie, which only waits for its parent, has.
func dead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestOnFailureRestarts(t *testing.T) {
	w := newWorld(t, Config{Backoff: Backoff{Base: 20 * time.Millisecond, Max: 50 * time.Millisecond}})
	mark := filepath.Join(t.TempDir(), "count")
	p := shell("retry", `echo x >> `+mark+`; echo run $(wc -l < `+mark+`); test $(wc -l < `+mark+`) -ge 4`)
	p.Spec.RestartPolicy = v1.RestartPolicyOnFailure
	w.create(p)
	got := w.awaitPhase("retry", v1.PodSucceeded)
	s := got.Status.ContainerStatuses[0]
	if s.RestartCount != 3 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("status is %+v", s)
	}
	if log := w.logs("retry", &v1.PodLogOptions{}); log != "run 4\n" {
		t.Errorf("log is %q", log)
	}
	if log := w.logs("retry", &v1.PodLogOptions{Previous: true}); log != "run 3\n" {
		t.Errorf("previous log is %q", log)
	}
}
