package processnode

import (
	"context"
	"syscall"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// launcher makes containers run: as processes, or hollow.
type launcher interface {
	// launch starts one run of a container. ended is called once, from any goroutine, when the run has ended and nothing
	// of it is left; never where launch returns an error, which is an unready or a broken.
	launch(ctx context.Context, r run, ended func(exit)) (handle, error)
	// rest gives back what only a running Pod needs: its volumes. Logs stay.
	rest(uid types.UID)
	// forget removes everything that the Pod has left.
	forget(uid types.UID)
	// claim marks every process that is started from now on, and clear kills all that carry the mark, whoever started
	// them and wherever they have hidden.
	claim(mark string)
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

// handle is a run that goes on.
type handle interface {
	// signal asks the run to end. It is harmless after the end.
	signal(sig syscall.Signal)
}

// unready is an error that time may cure: a ConfigMap that is not there yet. The container waits with the reason and is
// tried again.
type unready struct{ err error }

func (e unready) Error() string { return e.err.Error() }
func (e unready) Unwrap() error { return e.err }

// broken is an error that no attempt will cure: a program that does not exist. It counts as a run that failed.
type broken struct{ err error }

func (e broken) Error() string { return e.err.Error() }
func (e broken) Unwrap() error { return e.err }
