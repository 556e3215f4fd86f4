package processnode

import (
	"context"
	"syscall"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// launcher makes containers run: as processes, or hollow.
type launcher interface {
	// launch starts one run of a container. ended is called once, from any goroutine, when the run and all its processes have ended;
	// never if launch returns an error, which is an unready or a broken.
	launch(ctx context.Context, r run, ended func(exit)) (handle, error)
	// rest releases what only a running Pod needs: its volumes. Logs stay.
	rest(uid types.UID)
	// forget removes everything that the Pod has left.
	forget(uid types.UID)
	// setMark marks every process that is started from now on. clear kills all processes with the mark, whichever process started
	// them.
	setMark(mark string)
	clear()
	// close ends the launcher, when all runs have ended.
	close()
}

// run names one run of one container.
type run struct {
	pod       *v1.Pod
	container *v1.Container
	role      role
	// number counts the runs of the container, from 0.
	number int32
	id     string
}

// handle is a run in progress.
type handle interface {
	// signal asks the run to end. It is harmless after the end.
	signal(sig syscall.Signal)
}

// unready is a temporary error: a ConfigMap that does not exist yet. The container waits with the reason and is retried.
type unready struct{ err error }

func (e unready) Error() string { return e.err.Error() }
func (e unready) Unwrap() error { return e.err }

// broken is a permanent error: a program that does not exist. It counts as a run that failed.
type broken struct{ err error }

func (e broken) Error() string { return e.err.Error() }
func (e broken) Unwrap() error { return e.err }
