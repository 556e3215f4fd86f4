package main

import (
	"testing"
	"time"
)

// Schedules are due at a full minute, when all of them are ready and have been for a while.
func TestDueAt(t *testing.T) {
	w := workload{due: 500} // 30 s to make them, and quiet
	for now, want := range map[string]string{"11:58:00": "11:59:00", "11:58:14": "11:59:00", "11:58:15": "11:59:00", "11:58:16": "12:00:00", "11:59:59": "12:01:00"} {
		from, err := time.Parse(time.TimeOnly, now)
		if err != nil {
			t.Fatal(err)
		}
		due := w.dueAt(from)
		if got := due.Format(time.TimeOnly); got != want || due.Sub(from) > w.lead() {
			t.Errorf("created at %s: due at %s, want %s", now, got, want)
		}
	}
}
