package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a program that can be started, killed and started again. The output of all its lives goes to one file. It cannot
// outlive the test's process.
type Process struct {
	// Name identifies it in reports; LogFile receives its output.
	Name, LogFile string
	// Path and Args are the program; Env is its whole environment, nil for the test's own.
	Path string
	Args []string
	Env  []string

	mu    sync.Mutex
	life  *life
	began int64 // offset in the log at which this life begins
}

// life is one run of the program.
type life struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // read after ended
}

// Start starts the program.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil && p.life.alive() {
		return fmt.Errorf("%s runs already", p.Name)
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own descriptor
	info, err := log.Stat()
	if err != nil {
		return err
	}
	l := &life{cmd: exec.CommandContext(context.Background(), p.Path, p.Args...), ended: make(chan struct{})}
	l.cmd.Env, l.cmd.Stdout, l.cmd.Stderr, l.cmd.SysProcAttr = p.Env, log, log, dieWithParent()
	started := make(chan error)
	go l.run(started)
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.life, p.began = l, info.Size()
	return nil
}

// run stays on the thread that forked the child, because the kernel kills the child when that thread ends.
func (l *life) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := l.cmd.Start()
	started <- err
	if err == nil {
		l.err = l.cmd.Wait()
		close(l.ended)
	}
}

func (l *life) alive() bool {
	select {
	case <-l.ended:
		return false
	default:
		return true
	}
}

func (p *Process) current() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// Running reports whether it has been started and has not ended.
func (p *Process) Running() bool {
	l := p.current()
	return l != nil && l.alive()
}

// Kill is kill -9. It returns when the process is gone.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL, time.Minute) }

// Stop sends SIGTERM, and kills a process that does not obey in time, which is an error.
func (p *Process) Stop() error {
	err := p.end(syscall.SIGTERM, 30*time.Second)
	if err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// Freeze stops the process where it is, as a machine short of memory does; Thaw lets it continue and discover what has happened
// meanwhile.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (p *Process) Thaw() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(signal syscall.Signal) error {
	l := p.current()
	if l == nil || !l.alive() {
		return fmt.Errorf("%s does not run", p.Name)
	}
	return syscall.Kill(-l.cmd.Process.Pid, signal)
}

func (p *Process) end(signal syscall.Signal, within time.Duration) error {
	l := p.current()
	if l == nil || !l.alive() {
		return nil
	}
	_ = p.signal(signal) // fails only if it has just ended, as intended
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-l.ended:
		return nil
	case <-late.C:
		return fmt.Errorf("%s has not ended %v after %v", p.Name, within, signal)
	}
}

// Exit waits three times the time for the process to end by itself and returns its exit code, -1 if a signal ended it.
func (p *Process) Exit(within time.Duration) (code int, err error) {
	l := p.current()
	if l == nil {
		return 0, fmt.Errorf("%s was not started", p.Name)
	}
	within *= timeoutFactor
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-l.ended:
		return l.cmd.ProcessState.ExitCode(), nil
	case <-late.C:
		return 0, fmt.Errorf("%s still runs after %v", p.Name, within)
	}
}

// Printed returns what this life has printed so far.
func (p *Process) Printed() string {
	text, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(text[min(p.began, int64(len(text))):])
}

// Await waits until the output of this life matches the expression, and returns its first group. It fails if the process ends
// before that.
func (p *Process) Await(ctx context.Context, expression *regexp.Regexp) (group string, err error) {
	err = Poll(ctx, func(context.Context) error {
		over := !p.Running() // determined before reading, so that the last output counts
		if m := expression.FindStringSubmatch(p.Printed()); m != nil {
			group = m[1]
			return nil
		}
		if over {
			return Hopeless{fmt.Errorf("%s ended:\n%s", p.Name, Tail(p.Printed(), 10))}
		}
		return fmt.Errorf("%s has not printed %v", p.Name, expression)
	})
	return group, err
}

// Tail returns the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// since returns the contents of the file from the offset on.
func since(path string, offset int64) string {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) <= offset {
		return ""
	}
	return string(bytes.TrimSpace(text[offset:]))
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func base(path string) string { return strings.TrimSuffix(filepath.Base(path), ".log") }
