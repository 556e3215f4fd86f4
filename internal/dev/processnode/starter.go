//go:build linux

package processnode

import (
	"os"
	"runtime"
	"sync"
)

// starter forks all processes of a node from one thread. The kernel sends a process its parent-death signal when the
// thread that forked it ends, not the parent process; the Go runtime may end threads, but never this one.
type starter struct {
	work chan func()
	stop sync.Once
}

func newStarter() *starter {
	s := &starter{work: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

// fork is os.StartProcess on that thread.
func (s *starter) fork(path string, args []string, attr *os.ProcAttr) (proc *os.Process, err error) {
	done := make(chan struct{})
	s.work <- func() {
		defer close(done)
		proc, err = os.StartProcess(path, args, attr)
	}
	<-done
	return proc, err
}

// close ends the thread. All processes must have ended.
func (s *starter) close() { s.stop.Do(func() { close(s.work) }) }
