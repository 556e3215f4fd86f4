package engine_test

import (
	"context"
	"log/slog"
	"sync"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// faulty is a Store whose requests may fail, or wait.
type faulty struct {
	engine.Store
	// before runs before each request ("load", "save" or "forget") and may fail it.
	before func(ctx context.Context, request string) error
}

// broken puts a faulty store in front of the one that is configured.
func broken(before func(ctx context.Context, request string) error) func(*engine.Config) {
	return func(c *engine.Config) { c.Store = faulty{c.Store, before} }
}

// failNth fails the nth of these requests.
func failNth(request string, n int, err error) func(*engine.Config) {
	var mu sync.Mutex
	return broken(func(_ context.Context, r string) error {
		mu.Lock()
		defer mu.Unlock()
		if r == request {
			if n--; n == 0 {
				return err
			}
		}
		return nil
	})
}

func (f faulty) Load(ctx context.Context, key events.Key) ([]byte, uint64, error) {
	if err := f.before(ctx, "load"); err != nil {
		return nil, 0, err
	}
	return f.Store.Load(ctx, key)
}

func (f faulty) Save(ctx context.Context, key events.Key, data []byte, revision uint64, rests bool) (uint64, error) {
	if err := f.before(ctx, "save"); err != nil {
		return 0, err
	}
	return f.Store.Save(ctx, key, data, revision, rests)
}

func (f faulty) Forget(ctx context.Context, key events.Key) error {
	if err := f.before(ctx, "forget"); err != nil {
		return err
	}
	return f.Store.Forget(ctx, key)
}

// logbook keeps the messages that are logged, without their attributes.
type logbook struct{ journal }

func (*logbook) Enabled(context.Context, slog.Level) bool { return true }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	l.add("%v %s", r.Level, r.Message)
	return nil
}

func (l *logbook) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logbook) WithGroup(string) slog.Handler      { return l }

// into makes the runner log into the logbook.
func into(l *logbook) func(*engine.Config) {
	return func(c *engine.Config) { c.Log = slog.New(l) }
}
