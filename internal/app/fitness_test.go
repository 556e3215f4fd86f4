package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A member is unfit once the API server has not answered twice in a row, whether it says no or nothing at all, and fit
// again with the first answer.
func TestFitness(t *testing.T) {
	for name, silence := range map[string]func(context.Context) error{
		"refuses": func(context.Context) error { return errors.New("connection refused") },
		"hangs":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var away atomic.Bool
				asked := make(chan struct{}, 100)
				f := newFitness(func(ctx context.Context) error {
					defer func() { asked <- struct{}{} }()
					if away.Load() {
						return silence(ctx)
					}
					return nil
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go f.watch(ctx)
				expect := func(after string, fit bool) {
					t.Helper()
					<-asked
					synctest.Wait()
					if f.fit() != fit {
						t.Errorf("%s: fit is %v", after, f.fit())
					}
				}
				expect("one answer", true)
				away.Store(true)
				expect("one answer missing", true)
				expect("two answers missing", false)
				expect("three answers missing", false)
				away.Store(false)
				expect("an answer", true)
			})
		})
	}
}
