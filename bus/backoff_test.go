package bus

import (
	"testing"
	"time"
)

// The pause doubles up to a maximum, is never zero, and differs between programs.
func TestReconnectDelay(t *testing.T) {
	t.Parallel()
	near := func(rounds int, want time.Duration) {
		t.Helper()
		seen := map[time.Duration]bool{}
		for range 100 {
			d := reconnectDelay(rounds)
			if d < want*3/4 || d > want*5/4 {
				t.Errorf("round %d: %v, want about %v", rounds, d, want)
			}
			seen[d] = true
		}
		if len(seen) < 2 {
			t.Errorf("round %d: always the same", rounds)
		}
	}
	near(0, reconnectWait)
	near(1, reconnectWait)
	near(2, 2*reconnectWait)
	near(3, 4*reconnectWait)
	for _, rounds := range []int{5, 6, 100, 1 << 40} {
		near(rounds, reconnectAtMost)
	}
}
