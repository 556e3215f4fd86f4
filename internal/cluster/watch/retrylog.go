package watch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// firstPause and lastPause bound the wait between two attempts: short enough after a restart of the API server, and long
	// enough for an overloaded one.
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// retryLog paces attempts at an operation that fails, and logs once when the failure begins and once when it is over.
type retryLog struct {
	log   *slog.Logger
	what  string
	count *atomic.Int64 // of all that fail now; nil where they are not counted
	since time.Time     // zero while there is none
	last  time.Time     // the end of the last wait
	pause time.Duration
}

func newRetryLog(log *slog.Logger, what string) *retryLog { return &retryLog{log: log, what: what} }

// begins records that the operation fails.
func (t *retryLog) begins(err error) {
	if t.since.IsZero() {
		t.since = time.Now()
		if t.count != nil {
			t.count.Add(1)
		}
		t.log.Warn("cannot "+t.what+"; trying until it works", "cause", err)
	}
}

// over records that the operation works again.
func (t *retryLog) over() {
	if !t.since.IsZero() {
		t.log.Info("can "+t.what+" again", "after", time.Since(t.since).Round(time.Second))
		t.forget()
	}
}

// forget ends the failure for a caller that stops trying: it is not counted any longer.
func (t *retryLog) forget() {
	if !t.since.IsZero() && t.count != nil {
		t.count.Add(-1)
	}
	t.since = time.Time{}
}

// wait pauses before the next attempt: not at all if the last one held for a while, otherwise longer and longer, so that an
// operation that keeps failing right after it worked is paced, too. A value from sooner, which may be nil, ends the pause. wait
// fails only if ctx ends.
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

// pause waits, and fails only if ctx ends.
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
