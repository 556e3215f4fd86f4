package port

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// beginEnv makes this test program another process that draws, from a given port on, and keeps what it got until its input ends.
const beginEnv = "JOBSTREAM_TEST_DRAW_FROM"

func TestMain(m *testing.M) {
	from := os.Getenv(beginEnv)
	if from == "" {
		os.Exit(m.Run())
	}
	begin, err := strconv.Atoi(from)
	if err == nil {
		drawFrom(begin)
		begin, err = Free()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(begin)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// drawFrom makes a port the first one to be tried.
func drawFrom(port int) { drawn.next = port - first - 1 }

// Ports differ, can be listened on, and are none that the kernel gives to others; one that is taken is passed over.
func TestFree(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		p, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		if seen[p] || p < 10_000 || p >= 32_000 {
			t.Errorf("%d, after %v", p, seen)
		}
		seen[p] = true
		taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p+1))
		if err != nil {
			continue // another program has it, and so it is passed over all the same
		}
		defer taken.Close()
	}
}

// A control plane listens seconds after its ports were drawn: another process must not draw them in between.
func TestPortIsDrawnByOneProcess(t *testing.T) {
	theirs := drawnByAnother(t, first)
	drawFrom(theirs)
	mine, err := Free()
	if err != nil || mine == theirs {
		t.Errorf("two processes have drawn %d (%v)", mine, err)
	}
	if third := drawnByAnother(t, mine); third == mine || third == theirs {
		t.Errorf("a third process has drawn %d, after %d and %d", third, theirs, mine)
	}
}

// drawnByAnother returns the port that another process has drawn, which runs until the test ends.
func drawnByAnother(t *testing.T, from int) (port int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), beginEnv+"="+strconv.Itoa(from)), os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		port, err = strconv.Atoi(strings.TrimSpace(line))
	}
	if err != nil {
		t.Fatalf("another process drew %q: %v", line, err)
	}
	return port
}
