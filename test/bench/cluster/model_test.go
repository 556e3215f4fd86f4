package main

import (
	"strings"
	"testing"
	"time"
)

func TestScaled(t *testing.T) {
	for _, c := range []struct {
		part float64
		want model
	}{
		{1, big},
		{0.1, model{nodes: 500, jobs: 1500, podsOfJob: 10, schedules: 5000}},
		{0.01, model{nodes: 50, jobs: 150, podsOfJob: 10, schedules: 500}},
		{0.000001, model{nodes: 1, jobs: 1, podsOfJob: 10, schedules: 1}}, // never none
	} {
		if got := big.scaled(c.part); got != c.want {
			t.Errorf("%v of the model is %+v, want %+v", c.part, got, c.want)
		}
	}
	if got := big.scaled(0.1).pods(); got != 15000 {
		t.Errorf("a tenth of the model has %d Pods, want 15000", got)
	}
}

// What is there without load is not multiplied.
func TestWhole(t *testing.T) {
	for _, c := range []struct{ without, with, scale, want float64 }{
		{0, 2, 0.1, 20},
		{1, 3, 0.1, 21},
		{1, 3, 1, 3},      // the whole was measured
		{3, 1, 0.1, 3},    // imprecision
		{30, 30, 0.5, 30}, // the load adds nothing
	} {
		if got := whole(c.without, c.with, c.scale); got != c.want {
			t.Errorf("whole(%v, %v, %v) is %v, want %v", c.without, c.with, c.scale, got, c.want)
		}
	}
}

func TestDaily(t *testing.T) {
	for text, want := range map[string]int{"H * * * *": 24, "H H * * * *": 24, "H H * * *": 1, "*/10 * * * *": 144, "@every 30m": 48} {
		if got, err := daily(text); err != nil || got != want {
			t.Errorf("%q has %d runs a day, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"H H/1.2", "0 0 29 2 *"} {
		if _, err := daily(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestIntroductionHasTheNumbersOfBoth(t *testing.T) {
	b := &bench{options: options{scale: 0.1, schedule: "H * * * *"}, part: big.scaled(0.1), daily: 24, measured: time.Minute}
	for _, want := range []string{"5000 nodes; 150000 Pods", "1200000 Jobs a day", "SCALE=0.1 of it: 15000 Pods", "120000 Jobs a day, 83.3 a minute", "stands for 500"} {
		if !strings.Contains(b.introduction(), want) {
			t.Errorf("%q is not in: %s", want, b.introduction())
		}
	}
}
