package app

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// askFitness is how often the API server is asked whether it is there, and unfitAfter how many answers in a row have to
	// be missing: a member that gives its partitions away for one lost packet would do harm.
	askFitness = 2 * time.Second
	unfitAfter = 2
)

// fitness knows whether this process can reach the API server. A member that cannot is passed over while others can.
type fitness struct {
	ask   func(context.Context) error
	unfit atomic.Bool
}

func newFitness(ask func(context.Context) error) *fitness { return &fitness{ask: ask} }

func (f *fitness) fit() bool { return !f.unfit.Load() }

// watch asks until ctx ends.
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
