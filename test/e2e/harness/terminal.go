package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"github.com/gdamore/tcell/v3/vt"
)

// Terminal is a pseudo-terminal with a program on it, and an emulator that shows what a user would see.
type Terminal struct {
	cmd           *exec.Cmd
	pty           *os.File
	width, height int
	began         time.Time
	ended         chan struct{} // closed when all output has been read

	mu      sync.Mutex
	screen  vt.MockTerm
	written bytes.Buffer
	shots   []Shot
}

// Shot is what the terminal showed so long after the start: its lines, without trailing blanks and empty lines at the end.
type Shot struct {
	After time.Duration
	Lines []string
}

// OpenTerminal starts the program on a terminal of that size, as its standard input, output and error, and as its controlling
// terminal.
func OpenTerminal(cmd *exec.Cmd, width, height int) (*Terminal, error) {
	t := &Terminal{cmd: cmd, width: width, height: height, began: time.Now(), ended: make(chan struct{}),
		screen: vt.NewMockTerm(vt.MockOptSize{X: vt.Col(width), Y: vt.Row(height)})}
	if err := t.screen.Start(); err != nil {
		return nil, fmt.Errorf("start a terminal emulator: %w", err)
	}
	var err error
	if t.pty, err = pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		return nil, fmt.Errorf("start %s on a pseudo-terminal: %w", cmd.Path, err)
	}
	go t.read()
	return t, nil
}

// still is how long no output must come until a picture is complete: a busy machine delivers a frame in parts. It is half of the time
// between two frames of `kubectl jobstream`.
const still = 50 * time.Millisecond

// read takes a shot whenever output changes the picture.
func (t *Terminal) read() {
	defer close(t.ended)
	parts := make(chan []byte, 64)
	go func() {
		defer close(parts)
		for {
			b := make([]byte, 1<<12)
			n, err := t.pty.Read(b)
			if err != nil {
				return // a terminal without a program ends with EIO
			}
			parts <- b[:n]
		}
	}()
	whole := time.NewTimer(still)
	defer whole.Stop()
	for {
		select {
		case b, more := <-parts:
			if !more {
				t.shoot()
				return
			}
			t.mu.Lock()
			t.written.Write(b)
			_, _ = t.screen.Write(b)
			_ = t.screen.Drain()
			t.mu.Unlock()
			whole.Reset(still)
		case <-whole.C:
			if len(parts) == 0 { // otherwise this goroutine has slept, and the frame goes on
				t.shoot()
			}
		}
	}
}

func (t *Terminal) shoot() {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines()
	if last := len(t.shots) - 1; last < 0 || !slices.Equal(t.shots[last].Lines, lines) {
		t.shots = append(t.shots, Shot{After: time.Since(t.began), Lines: lines})
	}
}

func (t *Terminal) lines() []string {
	var lines []string
	for y := range t.height {
		var b strings.Builder
		for x := range t.width {
			if c := t.screen.GetCell(vt.Coord{X: vt.Col(x), Y: vt.Row(y)}).C; c != "" {
				b.WriteString(c)
			} else {
				b.WriteByte(' ')
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Shots returns everything that could be seen, in order.
func (t *Terminal) Shots() []Shot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.shots)
}

// Written returns everything that the program has written, as bytes.
func (t *Terminal) Written() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written.String()
}

// CursorShown reports whether the cursor is visible.
func (t *Terminal) CursorShown() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.screen.Backend().GetPrivateMode(vt.PmShowCursor) == vt.ModeOn && t.screen.Backend().GetCursor().IsVisible()
}

// Type types keys: "\x03" is Ctrl-C.
func (t *Terminal) Type(keys string) error {
	_, err := t.pty.WriteString(keys)
	return err
}

// Exit waits until the program has ended and all its output has been read, and returns its exit code. A program that takes
// three times as long as within is killed.
func (t *Terminal) Exit(within time.Duration) (code int, err error) {
	within *= timeoutFactor
	late := time.AfterFunc(within, func() { _ = t.cmd.Process.Kill() })
	defer late.Stop()
	<-t.ended
	_ = t.cmd.Wait() // it has a code, or not
	if !late.Stop() {
		return 0, fmt.Errorf("%s has not ended within %v", t.cmd.Path, within)
	}
	return t.cmd.ProcessState.ExitCode(), t.pty.Close()
}
