package schedule_test

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/schedule"
)

// BenchmarkSchedule measures the most that a turn of a ScheduledJob costs: parse, find the last and next times, and count those
// missed in ten years.
func BenchmarkSchedule(b *testing.B) {
	to := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	from := to.AddDate(-10, 0, 0)
	for _, c := range []struct{ name, spec string }{
		{"every second", "* * * * * *"},
		{"every five minutes", "*/5 * * * *"},
		{"at 02:30", "30 2 * * *"},
		{"weekdays, hashed", "H H(0-5) * * MON-FRI"},
		{"29 February", "0 0 29 2 *"},
		{"every 90 s", "@every 90s"},
	} {
		o := schedule.Options{Location: zone(b, "Europe/Berlin"), Seed: "0a53fc1a-6f4c-4a7e-9d3b-5c2e8f1d7b90", Anchor: from}
		s := parse(b, c.spec, o)
		b.Run("Parse/"+c.name, func(b *testing.B) {
			for b.Loop() {
				parse(b, c.spec, o)
			}
		})
		b.Run("Next/"+c.name, func(b *testing.B) {
			for b.Loop() {
				s.Next(to)
			}
		})
		b.Run("Prev/"+c.name, func(b *testing.B) {
			for b.Loop() {
				s.Prev(to)
			}
		})
		b.Run("Count of ten years/"+c.name, func(b *testing.B) {
			for b.Loop() {
				s.Count(from, to)
			}
		})
	}
}
