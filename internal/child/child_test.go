package child

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The end of a stopped child is not reported; its own children end with it.
func TestStopReachesTheWholeGroup(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("/bin/sh", "-c", `trap "" TERM; sleep 600 & echo $!; wait; sleep 600`)
	cmd.Stdout = out
	stubborn, err := Start(cmd, func(err error) { t.Errorf("an end that was asked for is reported: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	grandchild := ""
	until(t, "it to be deaf, and to have a child", func() bool {
		text, _ := os.ReadFile(out.Name())
		grandchild = strings.TrimSpace(string(text))
		return grandchild != ""
	})
	if err := stubborn.Err(); err != nil {
		t.Errorf("it runs, and has ended by %v", err)
	}
	for what, timeout := range map[string]time.Duration{"stop": 50 * time.Millisecond, "again": 0} {
		if err := stubborn.Stop(timeout); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := stubborn.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it has ended by %v", err)
	}
	until(t, "its child to have ended", func() bool {
		stat, err := os.ReadFile("/proc/" + grandchild + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestAnUnexpectedExitIsReported(t *testing.T) {
	died := make(chan error, 1)
	cmd := exec.Command("/bin/sh", "-c", "echo why; exit 3")
	var printed bytes.Buffer
	cmd.Stdout = &printed
	p, err := Start(cmd, func(err error) { died <- err })
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := <-died; err == nil || err.Error() != "exit status 3" || printed.String() != "why\n" {
		t.Errorf("%v, and it printed %q", err, printed.String())
	}
	if _, err := Start(exec.Command(filepath.Join(t.TempDir(), "none")), func(error) {}); err == nil {
		t.Error("a program that is not there was started")
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}
