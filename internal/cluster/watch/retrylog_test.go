package watch

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
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
		<-time.After(5 * time.Minute) // by the clock of the bubble
		if again := fail(); again != 0 {
			t.Errorf("paused %d s after it had worked for long", again)
		}
		if warned, better := strings.Count(log.String(), "cannot do it"), strings.Count(log.String(), "can do it again"); warned != 3 || better != 2 {
			t.Errorf("%d times bad, %d times good:\n%s", warned, better, log)
		}
	})
}
