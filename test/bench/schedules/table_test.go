package main

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
		if p50, p99, last := quantile(sorted, 50), quantile(sorted, 99), quantile(sorted, 100); p50 != c.p50 || p99 != c.p99 || last != c.max {
			t.Errorf("of %d: %d, %d, %d, want %d, %d, %d", c.of, p50, p99, last, c.p50, c.p99, c.max)
		}
	}
}

func TestMinuteAfter(t *testing.T) {
	for at, want := range map[string]string{"11:59:59": "12:00:00", "12:00:00": "12:00:00", "12:00:01": "12:01:00"} {
		from, err := time.Parse(time.TimeOnly, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := minuteAfter(from).Format(time.TimeOnly); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}

func TestUsageOfNobody(t *testing.T) {
	if _, err := usageOf("/nobody"); err == nil {
		t.Error("no error for a program that does not run")
	}
}
