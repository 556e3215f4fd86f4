package progress

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/functions/intervals"
)

func TestSpans(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": -time.Second, "1s": 700 * time.Millisecond, "59s": 59 * time.Second, "1m00s": 59600 * time.Millisecond, "2m05s": 125 * time.Second,
		"3h20m": 200 * time.Minute, "2d4h": 52 * time.Hour,
	} {
		if got := span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestPaces(t *testing.T) {
	for _, tt := range []struct {
		perSecond float64
		want      string
	}{{0, ""}, {412.4, "412/s"}, {10, "10/s"}, {9.5, "9.5/s"}, {1, "1.0/s"}, {0.5, "30/min"}, {0.05, "3.0/min"}, {0.005, "18/h"}, {0.000001, ""}} {
		if got := pace(tt.perSecond); got != tt.want {
			t.Errorf("%v is %q, want %q", tt.perSecond, got, tt.want)
		}
	}
}

func TestSomeOfASet(t *testing.T) {
	set := intervals.Of(1, 2, 3, 10, 20, 21, 30)
	for width, want := range map[int]string{
		80: "1-3,10,20,21,30", 35: "1-3,10,20,21,30", 30: "1-3,10 and 3 more", 24: "1-3 and 4 more", 5: "7 of them",
	} {
		if got := some(set, width); got != want {
			t.Errorf("in %d columns %q, want %q", width, got, want)
		}
	}
}

func TestRoundNumbers(t *testing.T) {
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 9: 5, 72: 50, 112: 100, 499: 200} {
		if got := roundDown(n); got != want {
			t.Errorf("%d down is %d, want %d", n, got, want)
		}
	}
	for n, want := range map[int]int{1: 1, 2: 2, 3: 5, 11: 20, 21: 25, 26: 50, 201: 250, 10_737_419: 20_000_000} {
		if got := roundUp(n); got != want {
			t.Errorf("%d up is %d, want %d", n, got, want)
		}
	}
}

// The rate is that of the last half minute of a quick Job: earlier work is forgotten, and pauses do not count.
func TestRate(t *testing.T) {
	var r rate
	r.saw(0, true, at(0))
	for s := 100; s <= 200; s++ {
		r.saw(s-100, s == 100, at(float64(s)))
	}
	if got := r.perSecond(at(200)); got != 1 {
		t.Errorf("%v/s, want 1", got)
	}
	for s := 1; s <= 40; s++ {
		r.saw(100+10*s, false, at(float64(200+s)))
	}
	if got := r.perSecond(at(240)); got != 10 {
		t.Errorf("%v/s, want 10", got)
	}
	if got := r.perSecond(at(269)); got != 5 {
		t.Errorf("%v/s after a standstill, want 5", got)
	}
}
