package report

import (
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		of            int
		p50, p99, max time.Duration
	}{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 1, 2, 2}, {100, 50, 99, 100}, {101, 51, 100, 101}, {5000, 2500, 4950, 5000}} {
		var sorted []time.Duration
		for i := range c.of {
			sorted = append(sorted, time.Duration(i+1))
		}
		if p50, p99, last := Quantile(sorted, 50), Quantile(sorted, 99), Quantile(sorted, 100); p50 != c.p50 || p99 != c.p99 || last != c.max {
			t.Errorf("of %d: %d, %d, %d, want %d, %d, %d", c.of, p50, p99, last, c.p50, c.p99, c.max)
		}
	}
}

func TestUsageOfAProgramThatDoesNotRun(t *testing.T) {
	if _, err := UsageOf("/no-program"); err == nil {
		t.Error("no error for a program that does not run")
	}
	if err := ResetPeak("/no-program"); err == nil {
		t.Error("the peak of a program that does not run is reset")
	}
}
