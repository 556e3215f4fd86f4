package backoff_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/jobstream/jobstream/functions/backoff"
	_ "github.com/jobstream/jobstream/internal/dev/replay"
)

func ExamplePolicy_Delay() {
	for failures := range 9 {
		fmt.Print(backoff.Pods.Delay(failures), " ")
	}
	// Output: 0s 10s 20s 40s 1m20s 2m40s 5m20s 10m0s 10m0s
}

// TestDelaysNeverShrinkAndNeverExceedTheMaximum, for any policy and any number of failures.
func TestDelaysNeverShrinkAndNeverExceedTheMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := backoff.Policy{Base: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "base"))}
		p.Max = p.Base + time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "more"))
		n := rapid.IntRange(0, 1<<20).Draw(t, "failures")
		a, b := p.Delay(n), p.Delay(n+1)
		if a > b || b > p.Max || n == 0 && (a != 0 || b != p.Base) {
			t.Fatalf("after %d failures %v, after %d %v, at most %v", n, a, n+1, b, p.Max)
		}
	})
}
