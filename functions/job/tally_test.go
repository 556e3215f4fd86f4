package job

import (
	"testing"

	"github.com/jobstream/jobstream/events"
)

// TestAnOrphanIsNotCounted: a Pod whose owner a user took away counts only while the Job may adopt it, which it may not once the Pod has
// ended or is being deleted.
func TestAnOrphanIsNotCounted(t *testing.T) {
	for _, c := range []struct {
		name                string
		row                 func(*Row)
		active, terminating int32
	}{
		{"it runs", func(*Row) {}, 1, 0},
		{"it is being deleted", func(r *Row) { r.Pod.Deleting = true }, 0, 0},
		{"it has succeeded", func(r *Row) { r.Pod.Phase = events.Succeeded }, 0, 0},
		{"it has failed", func(r *Row) { r.Pod.Phase = events.Failed }, 0, 0},
	} {
		s := tracked(func(r *Row) { r.Pod.Phase, r.Pod.Orphan = events.Running, true; c.row(r) })
		got := tally(s)
		if got.active != c.active || got.terminating != c.terminating || len(got.succeeded) != 0 || len(got.failed) != 0 {
			t.Errorf("%s: active %d, terminating %d, succeeded %v, failed %v; want active %d, terminating %d",
				c.name, got.active, got.terminating, got.succeeded, got.failed, c.active, c.terminating)
		}
	}
}
