package app

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// askFitness is the interval between two requests, and unfitAfter the number of consecutive failures that count: a member that
	// handed over its partitions after one lost packet would do harm.
	askFitness = 2 * time.Second
	unfitAfter = 2
)

// fitness observes whether this process can reach the API server. A member that cannot gets no partitions while others can.
type fitness struct {
	ask   func(context.Context) error
	unfit atomic.Bool
}

func newFitness(ask func(context.Context) error) *fitness { return &fitness{ask: ask} }

func (f *fitness) fit() bool { return !f.unfit.Load() }

// watch sends the requests until ctx ends.
func (f *fitness) watch(ctx context.Context) {
	tick := time.NewTicker(askFitness)
	defer tick.Stop()
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		answer, cancel := context.WithTimeout(ctx, askFitness)
		if missed++; f.ask(answer) == nil {
			missed = 0
		}
		cancel()
		f.unfit.Store(missed >= unfitAfter)
	}
}
