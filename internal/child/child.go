// Package child starts programs that cannot outlive this one: those of a development control plane, and of the demo.
//
// A child gets SIGKILL from the kernel when its parent dies (Linux: Pdeathsig), so kill -9 of a test leaves nothing.
// "Parent" means there the THREAD that forked it, and the Go runtime ends threads when it likes. So the goroutine
// that starts a child is locked to its thread, and stays on it, waiting, until the child has ended.
//
// A child has a process group of its own, so that Ctrl-C in a terminal reaches this program only, which then stops its
// children in order.
package child

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a child. All methods may be called from any goroutine.
type Process struct {
	cmd   *exec.Cmd
	asked atomic.Bool   // Stop was called
	done  chan struct{} // closed when it has ended
	how   error         // it has ended; read after done
}

// Start starts the command, and sets its SysProcAttr. unasked is called with the result of exec.Cmd.Wait if the child ends before
// Stop is called.
func Start(cmd *exec.Cmd, unasked func(error)) (*Process, error) {
	cmd.SysProcAttr = dieWithParent()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.how = cmd.Wait()
		if !p.asked.Load() {
			unasked(p.how)
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Stop sends SIGTERM, waits for timeout, and then kills the child; with timeout 0 it kills at once. It returns when the child
// has ended, and may be called again. The error means that the child cannot be killed.
func (p *Process) Stop(timeout time.Duration) error {
	p.asked.Store(true)
	if timeout > 0 {
		p.signal(syscall.SIGTERM)
		deadline := time.NewTimer(timeout)
		defer deadline.Stop()
		select {
		case <-p.done:
			return nil
		case <-deadline.C:
		}
	}
	p.signal(syscall.SIGKILL)
	const unkillable = time.Minute // only a process stuck in the kernel survives SIGKILL that long
	deadline := time.NewTimer(unkillable)
	defer deadline.Stop()
	select {
	case <-p.done:
		return nil
	case <-deadline.C:
		return fmt.Errorf("%s (process %d) did not end within %v of SIGKILL: look at it with ps", filepath.Base(p.cmd.Path), p.ID(), unkillable)
	}
}

// signal reaches the whole process group. While done is open the child is not reaped, so its number is still its own.
func (p *Process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.ID(), sig) // fails only if it has just ended
	}
}

// ID is the number of the process.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the result of exec.Cmd.Wait: nil for exit code 0, and while the child runs.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.how
	default:
		return nil
	}
}
