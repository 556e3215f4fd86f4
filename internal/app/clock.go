package app

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/jobstream/jobstream/events"
	"github.com/jobstream/jobstream/internal/engine"
)

// addClock defines the hidden flag that sets a program's clock, for tests only.
func (o *Options) addClock(f *pflag.FlagSet) {
	const name = "clock-offset"
	f.DurationVar(&o.ClockOffset, name, o.ClockOffset, "`time` that the clock is ahead of the machine's, for tests")
	if err := f.MarkHidden(name); err != nil {
		panic(err) // cannot fail: the flag has just been defined
	}
}

// now returns the program's time.
func (o *Options) now() time.Time { return time.Now().Add(o.ClockOffset) }

// timers translate times for a program whose clock is ahead: the bus has a clock of its own.
func (o *Options) timers(t engine.Timers) engine.Timers {
	if o.ClockOffset == 0 {
		return t
	}
	return shiftedTimers{t, o.ClockOffset}
}

type shiftedTimers struct {
	engine.Timers
	ahead time.Duration
}

// Set implements engine.Timers.
func (s shiftedTimers) Set(ctx context.Context, key events.Key, name string, at time.Time) error {
	return s.Timers.Set(ctx, key, name, at.Add(-s.ahead))
}
