package controlplane

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// errPortTaken says that a program found its port in use: choose another one and try again.
var errPortTaken = errors.New("port is taken")

// A process is a child that cannot outlive this program.
//
// It gets SIGKILL from the kernel when its parent dies (Linux: Pdeathsig), so kill -9 of a test leaves nothing.
// "Parent" means there the THREAD that forked it, and the Go runtime ends threads when it likes. So the goroutine
// that starts a child is locked to its thread, and stays on it, waiting, until the child has ended.
//
// It has a process group of its own, so that Ctrl-C in a terminal reaches this program only, which then stops the
// children in order.
type process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	asked   atomic.Bool   // to end
	done    chan struct{} // closed when it has ended
	waitErr error         // how it ended; read after done
}

// run starts a program that appends what it prints to logFile. unasked hears of an end that nobody asked for.
func run(program string, args []string, logFile string, unasked func(error)) (*process, error) {
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = dieWithParent()
	p := &process{name: filepath.Base(program), logFile: logFile, cmd: cmd, done: make(chan struct{})}

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.waitErr = cmd.Wait()
		if !p.asked.Load() {
			unasked(p.ended())
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// stop asks politely, waits that long, and then kills. With no patience it kills at once.
func (p *process) stop(patience time.Duration) error {
	if p == nil {
		return nil
	}
	p.asked.Store(true)
	if patience > 0 {
		p.signal(syscall.SIGTERM)
		deadline := time.NewTimer(patience)
		defer deadline.Stop()
		select {
		case <-p.done:
			return nil
		case <-deadline.C:
		}
	}
	p.signal(syscall.SIGKILL)
	const unkillable = 10 * time.Second // only a process stuck in the kernel survives SIGKILL that long
	deadline := time.NewTimer(unkillable)
	defer deadline.Stop()
	select {
	case <-p.done:
		return nil
	case <-deadline.C:
		return fmt.Errorf("%s (process %d) did not end within %v of SIGKILL: look at it with ps", p.name, p.cmd.Process.Pid, unkillable)
	}
}

// signal reaches the whole process group. While done is open the child is not reaped, so its number is still its own.
func (p *process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, sig) // fails only if it has just ended, which is what we want
	}
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ended explains an end that nobody asked for, with the last lines that the program printed.
func (p *process) ended() error {
	printed := tail(p.logFile, 8)
	if strings.Contains(printed, "address already in use") {
		return fmt.Errorf("%s: %w: %s", p.name, errPortTaken, printed)
	}
	return fmt.Errorf("%s ended by itself (%w); the end of %s:\n%s", p.name, p.waitErr, p.logFile, printed)
}

// tail returns the last lines of a file, as far as its last 16 KiB go: enough for any reason of a failure.
func tail(path string, lines int) string {
	const window = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(info.Size(), window))
	if _, err := file.ReadAt(text, info.Size()-int64(len(text))); err != nil && len(text) > 0 {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
