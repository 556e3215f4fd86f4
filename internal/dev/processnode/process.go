//go:build linux

package processnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jobstream/jobstream/internal/dev/processnode/sandbox"
)

// drainTime is how long a run's output may stay open after its process group has been killed: a process that has left
// the group must not keep the Pod from ending.
const drainTime = 3 * time.Second

// command is a process as the node wants it.
type command struct {
	args    []string // with the program's name first
	env     []string
	path    string // the PATH in env
	dir     string
	sandbox *sandbox.Spec // nil: the host's files as they are
}

// process is one run of a container as a process group.
type process struct {
	mu   sync.Mutex
	proc *os.Process // nil once it has been reaped: its id may be reused
}

// signal sends the signal to the whole process group, so that a shell does not shield its children.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil {
		_ = syscall.Kill(-p.proc.Pid, sig)
	}
}

// start runs the command with its output in the log. ended is called when the process has ended, its group has been
// killed and the output is complete.
func (s *starter) start(c command, log *logFile, ended func(*os.ProcessState, time.Time)) (*process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var readers, writers [2]*os.File
	for i := range readers {
		if readers[i], writers[i], err = os.Pipe(); err != nil {
			closeAll(readers[:]...)
			closeAll(writers[:]...)
			return nil, err
		}
	}
	proc, err := s.run(c, []*os.File{null, writers[0], writers[1]})
	closeAll(writers[:]...)
	if err != nil {
		closeAll(readers[:]...)
		return nil, err
	}
	p := &process{proc: proc}
	var copied sync.WaitGroup
	for i, stream := range []string{"stdout", "stderr"} {
		copied.Go(func() { log.copy(stream, readers[i]) })
	}
	go func() {
		state, finished := p.wait()
		for _, r := range readers {
			_ = r.SetReadDeadline(time.Now().Add(drainTime))
		}
		copied.Wait()
		closeAll(readers[:]...)
		ended(state, finished)
	}()
	return p, nil
}

// run forks the command, through its sandbox where it has one.
func (s *starter) run(c command, files []*os.File) (*os.Process, error) {
	// A session of its own: a process group to signal, and no terminal whose Ctrl-C would reach it.
	attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if c.sandbox == nil {
		path, err := sandbox.Lookup(c.args[0], c.path, c.dir)
		if err != nil {
			return nil, notRunnable(c.args[0], c.path, err)
		}
		return s.fork(path, c.args, &os.ProcAttr{Dir: c.dir, Env: c.env, Files: files, Sys: attributes})
	}
	ready, err := sandbox.Prepare(*c.sandbox)
	if err != nil {
		return nil, err
	}
	sandbox.Attributes(attributes)
	proc, err := s.fork(ready.Path, ready.Args, &os.ProcAttr{Env: c.env, Files: append(files, ready.Files...), Sys: attributes})
	err = ready.Started(err)
	if err == nil {
		return proc, nil
	}
	if proc != nil {
		_ = proc.Kill()
		_, _ = proc.Wait()
	}
	var failure sandbox.Failure
	switch {
	case errors.As(err, &failure) && failure.Missing:
		return nil, notRunnable(c.args[0], c.path, fs.ErrNotExist)
	case errors.As(err, &failure):
		return nil, broken{failure}
	}
	return nil, err
}

// awaitExit waits until the process has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// wait waits for the leader of the group and kills the rest of the group before the leader's id is given back.
func (p *process) wait() (*os.ProcessState, time.Time) {
	awaitExit(p.proc.Pid)
	finished := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.proc.Pid, syscall.SIGKILL)
	state, _ := p.proc.Wait()
	p.proc = nil
	return state, finished
}

// exitOf returns how a process ended, as a container runtime does: 128 + the signal if a signal ended it.
func exitOf(state *os.ProcessState, e exit) exit {
	e.code, e.reason = 255, "Error"
	if state == nil {
		e.message = "the process could not be waited for"
		return e
	}
	status := state.Sys().(syscall.WaitStatus)
	if e.code = int32(status.ExitStatus()); status.Signaled() {
		e.signal = int32(status.Signal())
		e.code = 128 + e.signal
	}
	if e.code == 0 {
		e.reason = "Completed"
	}
	return e
}

// notRunnable explains, like a container runtime, that a program cannot be run, and the remedy.
func notRunnable(program, path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return broken{fmt.Errorf("exec: %q: executable file not found in $PATH (%s): the development node runs programs of "+
			"this machine, not of the image: install %s, or change the command", program, path, filepath.Base(program))}
	}
	return broken{fmt.Errorf("exec: %q: %w", program, err)}
}
