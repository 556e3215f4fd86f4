package main

import (
	"testing"
	"time"
)

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
