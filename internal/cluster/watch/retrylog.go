package watch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// firstPause and lastPause bound the wait between two attempts: soon enough after a restart of the API server, and
	// gentle enough for one that is overloaded.
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// retryLog paces attempts at something that fails, and says so once when it begins and once when it is over.
type retryLog struct {
	log   *slog.Logger
	what  string
	count *atomic.Int64 // of all that are in trouble; nil where nobody counts
	since time.Time     // zero while there is none
	last  time.Time     // the end of the last wait
	pause time.Duration
}

func newRetryLog(log *slog.Logger, what string) *retryLog { return &retryLog{log: log, what: what} }

// begins says that it does not work.
func (t *retryLog) begins(err error) {
	if t.since.IsZero() {
		t.since = time.Now()
		if t.count != nil {
			t.count.Add(1)
		}
		t.log.Warn("cannot "+t.what+"; trying until it works", "cause", err)
	}
}

// over says that it works again.
func (t *retryLog) over() {
	if !t.since.IsZero() {
		t.log.Info("can "+t.what+" again", "after", time.Since(t.since).Round(time.Second))
		t.forget()
	}
}

// forget is for whoever stops trying: it is counted no longer.
func (t *retryLog) forget() {
	if !t.since.IsZero() && t.count != nil {
		t.count.Add(-1)
	}
	t.since = time.Time{}
}

// wait lets some time pass before the next attempt: none if the last one held for a while, else ever more, so that what
// fails again and again right after it worked is paced too. It is over at once if somebody asks by sooner, which may be nil,
// and fails only if ctx ends.
func (t *retryLog) wait(ctx context.Context, sooner <-chan struct{}) error {
	if time.Since(t.last) > lastPause+t.pause {
		t.pause = 0
	}
	timer := time.NewTimer(t.pause)
	defer timer.Stop()
	t.pause = min(max(2*t.pause, firstPause), lastPause)
	defer func() { t.last = time.Now() }()
	select {
	case <-timer.C:
		return nil
	case <-sooner:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause lets some time pass, and fails only if ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
