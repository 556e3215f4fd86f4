package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jobstream/jobstream/test/e2e/harness"
)

// storm injects faults and heals them.
type storm struct {
	system   *harness.System
	keeper   *keeper
	recorder *recorder
	log      *slog.Logger

	mu    sync.Mutex
	busy  map[string]*sync.Mutex // for parts with one fault at a time
	done  []Done
	wrong []error
	lost  map[string]time.Time // nodes that were killed
}

// Done is a fault that has been healed.
type Done struct {
	Fault
	What        string
	Began, Ends time.Time
}

func newStorm(s *harness.System, k *keeper, r *recorder, log *slog.Logger) *storm {
	return &storm{system: s, keeper: k, recorder: r, log: log, busy: map[string]*sync.Mutex{}, lost: map[string]time.Time{}}
}

// run injects all drawn faults, and returns when all are healed: when ctx ends, at once.
func (s *storm) run(ctx context.Context, faults []Fault) {
	began := time.Now()
	var all sync.WaitGroup
	defer all.Wait()
	for _, f := range faults {
		if !pass(ctx, f.At-time.Since(began)) {
			return
		}
		all.Go(func() { s.inject(ctx, f) })
	}
	pass(ctx, time.Hour) // faults in progress last until they are over or ctx ends
}

// inject is one fault from its start to its heal.
func (s *storm) inject(ctx context.Context, f Fault) {
	p := s.plan(f)
	lock := s.lock(p.part)
	lock.Lock() // the previous fault is healed first
	defer lock.Unlock()
	if ctx.Err() != nil {
		return
	}
	d := Done{Fault: f, What: p.what, Began: time.Now()}
	s.log.Info("breaks", "kind", f.Kind, "what", p.what, "for", f.For, "by", f.By)
	err := p.begin(ctx)
	pass(ctx, f.For)
	err = errors.Join(err, p.heal(context.WithoutCancel(ctx)))
	d.Ends = time.Now()
	s.log.Info("healed", "kind", f.Kind, "what", p.what, "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, d)
	if err != nil {
		s.wrong = append(s.wrong, fmt.Errorf("%s, %s: %w", f.Kind, p.what, err))
	}
}

func (s *storm) lock(part string) *sync.Mutex {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[part] == nil {
		s.busy[part] = &sync.Mutex{}
	}
	return s.busy[part]
}

// pass waits for so long, and reports whether ctx has allowed it.
func pass(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
