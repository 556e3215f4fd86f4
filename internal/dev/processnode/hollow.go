package processnode

import (
	"context"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Annotations that control how a Pod of a hollow node behaves.
const (
	// DurationAnnotation is how long each main container runs: a Go duration, 0 if it is missing or invalid. Sidecars run until they
	// are stopped; init containers end at once.
	DurationAnnotation = "processnode.jobstream.dev/duration"
	// ExitCodeAnnotation is the exit code of each main container.
	ExitCodeAnnotation = "processnode.jobstream.dev/exit-code"
)

// hollow is the launcher without processes: a container is a timer. A Pod costs a goroutine and its API requests.
type hollow struct{}

// hollowRun is a run of a container without a process.
type hollowRun struct {
	once  sync.Once
	timer *time.Timer
	start time.Time
	id    string
	ended func(exit)
}

func (hollow) launch(_ context.Context, r run, ended func(exit)) (handle, error) {
	h := &hollowRun{start: time.Now(), id: r.id, ended: ended}
	if r.role == sidecarRole {
		return h, nil
	}
	duration, code := time.Duration(0), 0
	if r.role == mainRole {
		duration, _ = time.ParseDuration(r.pod.Annotations[DurationAnnotation])
		code, _ = strconv.Atoi(r.pod.Annotations[ExitCodeAnnotation])
	}
	h.timer = time.AfterFunc(max(0, duration), func() { h.end(int32(code), 0) })
	return h, nil
}

func (h *hollowRun) end(code int32, sig syscall.Signal) {
	h.once.Do(func() {
		e := exit{code: code, signal: int32(sig), reason: "Error", started: h.start, finished: time.Now(), id: h.id}
		if code == 0 {
			e.reason = "Completed"
		}
		h.ended(e)
	})
}

// signal ends the run at once, as a program that knows its signals would.
func (h *hollowRun) signal(sig syscall.Signal) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.end(128+int32(sig), sig)
}

func (hollow) rest(types.UID)   {}
func (hollow) forget(types.UID) {}
func (hollow) setMark(string)   {}
func (hollow) clear()           {}
func (hollow) close()           {}
