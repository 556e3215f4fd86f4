package bulk

import (
	"context"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

const (
	lookEvery = 200 * time.Millisecond
	sayEvery  = 10 * time.Second
)

// Await waits until count has reached all, and prints the progress now and then. A missed deadline (zero for none) is no error;
// the end of a part of the system is one.
func (c *Cluster) Await(ctx context.Context, what string, count func() int, all int, deadline time.Time) error {
	look, talk := time.NewTicker(lookEvery), time.NewTicker(sayEvery)
	defer look.Stop()
	defer talk.Stop()
	for count() < all && (deadline.IsZero() || time.Now().Before(deadline)) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-talk.C:
			report.Say("%s: %d of %d", what, count(), all)
		case <-look.C:
			if err := c.Broken(); err != nil {
				return err
			}
		}
	}
	report.Say("%s: %d of %d", what, count(), all)
	return nil
}

// Pass waits, and returns an error if a part of the system has not survived it.
func (c *Cluster) Pass(ctx context.Context, what string, until time.Time) error {
	report.Say("%s until %s", what, until.UTC().Format(time.TimeOnly))
	if err := Rest(ctx, time.Until(until)); err != nil {
		return err
	}
	return c.Broken()
}

// Rest waits, or returns why ctx has ended.
func Rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
