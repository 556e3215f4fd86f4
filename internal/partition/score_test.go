package partition

import "testing"

// TestScoreNeverChanges: members of two versions that score differently would each give a partition to another member, and wait for each other.
// A change of the scores needs a new version of the heartbeats.
func TestScoreNeverChanges(t *testing.T) {
	for _, c := range []struct {
		function, member string
		partition        int
		want             uint64
	}{
		{"job", "reconciler-0", 0, 0x1cbd0645f43c058d},
		{"job", "reconciler-0", 31, 0x401d86059cdd02e},
		{"job", "reconciler-1", 0, 0xed347fe2cd856654},
		{"scheduledjob", "reconciler-0", 0, 0x13beaca1ff8f3d92},
	} {
		if got := score(c.function, c.member, c.partition); got != c.want {
			t.Errorf("%s, %s, %d: %#x, not %#x", c.function, c.member, c.partition, got, c.want)
		}
	}
}
