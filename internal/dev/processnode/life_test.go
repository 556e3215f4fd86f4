package processnode

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func step(name, script string) v1.Container {
	return v1.Container{Name: name, Image: "busybox", Command: []string{"sh", "-c", script}}
}

func sidecar(name, script string) v1.Container {
	c := step(name, script)
	c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	return c
}

// noting is a Pod whose containers append to one file, so that a test can see their order.
func noting(file, name string) (p *v1.Pod, note func(string) string, read func() string) {
	return shell(name, ""), func(s string) string { return "echo " + s + " >> " + file },
		func() string {
			b, _ := os.ReadFile(file)
			return strings.Join(strings.Fields(string(b)), " ")
		}
}

func TestInitContainersAndSidecars(t *testing.T) {
	w := newWorld(t, Config{})
	file := filepath.Join(t.TempDir(), "notes")
	p, note, read := noting(file, "row")
	both := fmt.Sprintf("until grep -qx one %s && grep -qx two %s; do sleep 0.02; done; ", file, file) // a sidecar is started before it has said so
	stay := func(name string) string {
		return fmt.Sprintf("trap '%s; exit 0' TERM; %s; while :; do sleep 0.02; done", note(name+"-end"), note(name))
	}
	p.Spec.InitContainers = []v1.Container{
		step("first", note("first")), sidecar("one", stay("one")), sidecar("two", stay("two")), step("second", both+note("second")),
	}
	p.Spec.Containers[0] = step("main", "sleep 0.1;"+note("main"))
	w.create(p)
	got := w.awaitPhase("row", v1.PodSucceeded)
	if notes := read(); notes != "first one two second main two-end one-end" && notes != "first two one second main two-end one-end" {
		t.Errorf("the containers ran as %q", notes)
	}
	for _, s := range got.Status.InitContainerStatuses {
		if s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 || s.RestartCount != 0 {
			t.Errorf("init container is %+v", s)
		}
	}
}

func TestFailedInitFailsThePod(t *testing.T) {
	w := newWorld(t, Config{})
	p, note, read := noting(filepath.Join(t.TempDir(), "notes"), "bad")
	p.Spec.InitContainers = []v1.Container{sidecar("side", "while :; do sleep 0.02; done"), step("bad", note("bad")+"; exit 3")}
	p.Spec.Containers[0] = step("main", note("main"))
	w.create(p)
	got := w.awaitPhase("bad", v1.PodFailed)
	if read() != "bad" || got.Status.ContainerStatuses[0].State.Waiting == nil {
		t.Errorf("after %q the main container is %+v", read(), got.Status.ContainerStatuses[0].State)
	}
}

func TestSlotsBoundWhatRuns(t *testing.T) {
	w := newWorld(t, Config{MaxPods: 1})
	gate := filepath.Join(t.TempDir(), "gate")
	w.create(shell("one", "until test -e "+gate+"; do sleep 0.02; done"))
	w.awaitPhase("one", v1.PodRunning)
	w.create(shell("two", "true"))
	bound := shell("three", "true") // another client has bound it: it waits on the node
	bound.Spec.NodeName = w.config.Name
	w.create(bound)
	w.await("one", "waited for", func(*v1.Pod) bool { return w.node.slots.waiting() == 2 })
	for _, name := range []string{"two", "three"} {
		if p := w.awaitPhase(name, v1.PodPending); len(p.Status.ContainerStatuses) != 0 {
			t.Errorf("pod %s was started without a slot: %+v", name, p.Status)
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.awaitPhase("two", v1.PodSucceeded)
	w.awaitPhase("three", v1.PodSucceeded)
}

func TestPodDeadline(t *testing.T) {
	w := newWorld(t, Config{})
	p := shell("slow", "sleep 600")
	p.Spec.ActiveDeadlineSeconds = ptr.To(int64(1))
	w.create(p)
	if got := w.awaitPhase("slow", v1.PodFailed); got.Status.Reason != "DeadlineExceeded" {
		t.Errorf("status is %+v", got.Status)
	}
}

func TestForeignConditionsStay(t *testing.T) {
	w := newWorld(t, Config{})
	w.create(shell("doomed", "sleep 600"))
	p := w.awaitPhase("doomed", v1.PodRunning)
	p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "Test"})
	p.Finalizers = []string{"example.com/hold"}
	if _, err := w.client.CoreV1().Pods(w.namespace).Patch(t.Context(), p.Name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["example.com/hold"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.ResourceVersion = ""
	if _, err := w.client.CoreV1().Pods(w.namespace).UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.delete("doomed", metav1.DeleteOptions{})
	got := w.awaitPhase("doomed", v1.PodFailed)
	found := false
	for _, c := range got.Status.Conditions {
		found = found || c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue
	}
	if !found {
		t.Errorf("the DisruptionTarget condition is lost: %+v", got.Status.Conditions)
	}
	_, err := w.client.CoreV1().Pods(w.namespace).Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.awaitGone("doomed")
}

// A node that is restarted kills what its former life has left behind, and runs none of its Pods again.
func TestRestartedNodeRunsNothingTwice(t *testing.T) {
	w := newWorld(t, Config{})
	p, note, read := noting(filepath.Join(t.TempDir(), "notes"), "once")
	pidFile := filepath.Join(t.TempDir(), "pid")
	p.Spec.RestartPolicy = v1.RestartPolicyAlways
	p.Spec.Containers[0] = step("main", note("run")+"; setsid sh -c 'echo $$$$ > "+pidFile+"; exec sleep 600' & wait")
	w.create(p)
	w.awaitPhase("once", v1.PodRunning)
	var pid int
	w.await("once", "with a process that has left its group", func(*v1.Pod) bool {
		pid = readPID(pidFile)
		return pid > 0
	})
	w.stop()
	awaitDead(t, pid) // it has been killed; the kernel may still be at it
	if left, _ := os.ReadDir(w.config.DataDir); len(left) > 0 {
		t.Errorf("the node has left %v", left)
	}
	w.startNode()
	got := w.awaitPhase("once", v1.PodFailed)
	if got.Status.Reason != "NodeRestarted" || mainState(t, got).ExitCode != 137 {
		t.Errorf("status is %+v", got.Status)
	}
	w.create(shell("next", "true"))
	w.awaitPhase("next", v1.PodSucceeded)
	if read() != "run" {
		t.Errorf("the pod ran %q", read())
	}
}

func TestFollowedLog(t *testing.T) {
	w := newWorld(t, Config{})
	gate := filepath.Join(t.TempDir(), "gate")
	w.create(shell("talk", "echo one; until test -e "+gate+"; do sleep 0.02; done; echo two; printf three"))
	w.awaitPhase("talk", v1.PodRunning)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	r, err := w.client.CoreV1().Pods(w.namespace).GetLogs("talk", &v1.PodLogOptions{Follow: true, Timestamps: true}).Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	var got []string
	for lines.Scan() {
		stamp, text, _ := strings.Cut(lines.Text(), " ")
		if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil {
			t.Errorf("line %q has no time: %v", lines.Text(), err)
		}
		got = append(got, text)
		if len(got) == 1 {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if strings.Join(got, " ") != "one two three" {
		t.Errorf("followed %q", got)
	}
	if log := w.logs("talk", &v1.PodLogOptions{TailLines: ptr.To(int64(2))}); log != "two\nthree" {
		t.Errorf("tail is %q", log)
	}
	if log := w.logs("talk", &v1.PodLogOptions{LimitBytes: ptr.To(int64(5))}); log != "one\nt" {
		t.Errorf("limited log is %q", log)
	}
}
