package controlplane_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jobstream/jobstream/internal/dev/controlplane"
)

// childEnv makes this test program start a control plane and wait to be killed, instead of running tests.
const childEnv = "JOBSTREAM_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := beVictim(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beVictim prints the folder of its control plane and then waits for the end of its input.
func beVictim() error {
	cp, err := controlplane.Start(context.Background(), controlplane.Config{ControllerManager: true, UnsafeNoFsync: true})
	if err != nil {
		return err
	}
	fmt.Println(cp.Dir())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return cp.Stop()
}

// eventually polls until check returns no error, or fails with the last one.
func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			if err := check(); err != nil { // once more: the last check may be long ago on a busy machine
				t.Fatalf("after %v: %v", within, err)
			}
			return
		}
	}
}

// processesOf returns the command lines of running programs that name a folder, as every program of a control
// plane names its own.
func processesOf(t *testing.T, dir string) map[int]string {
	t.Helper()
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) == 0 {
		t.Skip("no /proc to look for processes in: this is not Linux")
	}
	found := map[int]string{}
	for _, path := range commands {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), dir+"/") {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			found[id] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}
