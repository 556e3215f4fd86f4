package cluster

import (
	"context"
	"log/slog"
	"time"
)

const (
	// firstPause and lastPause bound the wait between two attempts: soon enough after a restart of the API server, and
	// gentle enough for one that is overloaded.
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// trouble paces attempts at something that fails, and says so once when it begins and once when it is over.
type trouble struct {
	log   *slog.Logger
	what  string
	since time.Time // zero while there is none
	last  time.Time // the end of the last wait
	pause time.Duration
}

func newTrouble(log *slog.Logger, what string) *trouble { return &trouble{log: log, what: what} }

// begins says that it does not work.
func (t *trouble) begins(err error) {
	if t.since.IsZero() {
		t.since = time.Now()
		t.log.Warn("cannot "+t.what+"; trying until it works", "cause", err)
	}
}

// over says that it works again.
func (t *trouble) over() {
	if !t.since.IsZero() {
		t.log.Info("can "+t.what+" again", "after", time.Since(t.since).Round(time.Second))
		t.since = time.Time{}
	}
}

// wait lets some time pass before the next attempt: none if the last one held for a while, else ever more, so that what
// fails again and again right after it worked is paced too. It is over at once if somebody asks by sooner, which may be nil,
// and fails only if ctx ends.
func (t *trouble) wait(ctx context.Context, sooner <-chan struct{}) error {
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
