package watch

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobstream/jobstream/internal/cluster/clustertest"
)

func TestRetryLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &clustertest.Buffer{}
		x := newRetryLog(slog.New(slog.NewTextHandler(log, nil)), "do it")
		fail := func() time.Duration {
			began := time.Now()
			x.begins(errors.New("away"))
			if err := x.wait(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			return time.Since(began) / time.Second
		}
		var got []time.Duration
		for range 8 {
			got = append(got, fail())
		}
		if want := []time.Duration{0, 1, 2, 4, 8, 16, 30, 30}; !slices.Equal(got, want) {
			t.Errorf("pauses %v, want %v", got, want)
		}
		x.over()
		if again := fail(); again != 30 {
			t.Errorf("paused %d s after it had worked for a moment", again)
		}
		x.over()
		<-time.After(2 * lastPause) // by the clock of the bubble
		if again := fail(); again != 30 {
			t.Errorf("paused %d s after it had worked for a minute", again)
		}
		x.over()
		<-time.After(2*lastPause + 1)
		if again := fail(); again != 0 {
			t.Errorf("paused %d s after it had worked for long", again)
		}
		if warned, better := strings.Count(log.String(), "cannot do it"), strings.Count(log.String(), "can do it again"); warned != 4 || better != 3 {
			t.Errorf("%d times bad, %d times good:\n%s", warned, better, log)
		}
	})
}

// Of operations that share a count, it has those that fail now: each once, and none that works again or that its caller has given up.
func TestRetryLogCounts(t *testing.T) {
	failing := &atomic.Int64{}
	a, b := newRetryLog(slog.New(slog.DiscardHandler), "do a"), newRetryLog(slog.New(slog.DiscardHandler), "do b")
	a.count, b.count = failing, failing
	for _, step := range []struct {
		name string
		do   func()
		want int64
	}{
		{"a fails", func() { a.begins(errors.New("away")) }, 1},
		{"a fails again", func() { a.begins(errors.New("away")) }, 1},
		{"b fails", func() { b.begins(errors.New("away")) }, 2},
		{"a works", a.over, 1},
		{"a works, as before", a.over, 1},
		{"the caller gives b up", b.forget, 0},
		{"it was given up before", b.forget, 0},
	} {
		if step.do(); failing.Load() != step.want {
			t.Errorf("%s: %d fail, not %d", step.name, failing.Load(), step.want)
		}
	}
}
