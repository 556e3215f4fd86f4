package alarm

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// running starts an Alarm in a synctest bubble, where time passes as soon as all goroutines wait.
func running(t *testing.T, sink *memory, ahead *atomic.Int64) *Alarm {
	t.Helper()
	a := newAlarm(t, Config{Sink: sink, Now: func() time.Time { return time.Now().UTC().Add(time.Duration(ahead.Load())) }})
	ctx, cancel := context.WithCancel(t.Context())
	go a.Run(ctx)
	t.Cleanup(func() { cancel(); synctest.Wait() })
	return a
}

// pass lets time pass in the bubble.
func pass(d time.Duration) { <-time.After(d) }

func wantRings(t *testing.T, sink *memory, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := sink.take(); !slices.Equal(got, want) {
		t.Errorf("fired %q, want %q", got, want)
	}
}

func TestRun(t *testing.T) {
	t.Run("fires in time, also for what turns up while it sleeps", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink, ahead := &memory{}, &atomic.Int64{}
			a := running(t, sink, ahead)
			a.Saw(job("a", "0 12 * * *"))
			synctest.Wait()
			a.Saw(job("b", "*/3 * * * * *"))
			pass(3 * time.Second)
			wantRings(t, sink, "b 01 00:00:03")
			a.Gone("b")
			pass(12*time.Hour - 4*time.Second)
			wantRings(t, sink)
			pass(time.Second)
			wantRings(t, sink, "a 01 12:00:00")
		})
	})
	t.Run("notices within seconds that the clock was set ahead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink, ahead := &memory{}, &atomic.Int64{}
			running(t, sink, ahead).Saw(job("a", "0 12 * * *"))
			pass(time.Second)
			ahead.Store(int64(36 * time.Hour))
			pass(lookAtLeast)
			wantRings(t, sink, "a 02 12:00:00")
		})
	})
	t.Run("fires again when the bus took nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink, ahead := &memory{}, &atomic.Int64{}
			a := running(t, sink, ahead)
			sink.breaks(errors.New("the bus is lost"))
			a.Saw(job("a", "0 * * * *"))
			a.Saw(job("b", "0 * * * *"))
			pass(time.Hour + 90*time.Second)
			sink.breaks(nil)
			pass(pause)
			synctest.Wait()
			got := sink.take()
			slices.Sort(got)
			if !slices.Equal(got, []string{"a 01 01:00:00", "b 01 01:00:00"}) {
				t.Errorf("fired %q", got)
			}
		})
	})
	t.Run("goes on past a fired timer that can never be published", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink, ahead := &memory{}, &atomic.Int64{}
			a := running(t, sink, ahead)
			sink.breaks(hopeless{})
			a.Saw(job("a", "0 * * * *"))
			pass(time.Hour)
			synctest.Wait()
			sink.breaks(nil)
			pass(time.Hour)
			wantRings(t, sink, "a 01 02:00:00")
		})
	})
}

type hopeless struct{}

func (hopeless) Error() string   { return "too large" }
func (hopeless) Permanent() bool { return true }
