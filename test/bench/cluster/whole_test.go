package main

import (
	"slices"
	"testing"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

func TestUntilFull(t *testing.T) {
	for _, c := range []struct {
		what  string
		of    stream
		grown float64
		hours float64
		known bool
	}{
		{"an hour", stream{most: 3600 * 1000, age: time.Hour}, 1000, 1, true},
		{"half a day", stream{most: 12 * 3600, age: time.Hour}, 1, 12, true},
		{"it does not grow", stream{most: 1000, age: time.Hour}, 0, 0, false},
		{"no limit", stream{age: time.Hour}, 1, 0, false},
		{"what it holds is replaced", stream{most: 1000}, 1, 0, false},
	} {
		if hours, known := untilFull(c.of, c.grown); hours != c.hours || known != c.known {
			t.Errorf("%s: %v hours, %v, want %v, %v", c.what, hours, known, c.hours, c.known)
		}
	}
}

// The rows of the last table hold what was measured beside what was computed from it.
func TestWholeTable(t *testing.T) {
	empty, full := measured(), measured()
	empty.to.usage = map[string]report.Usage{"trigger": {CPU: time.Second, RSS: 1 << 18}}
	empty.to.facts = empty.from.facts
	full.to.usage["trigger"] = report.Usage{CPU: 13 * time.Second, Peak: 1 << 19}
	full.to.streams = map[string]stream{"facts": {bytes: 25000, most: 1 << 30, age: 72 * time.Hour}, "quarantine": {}}
	r := &results{bench: &bench{options: options{scale: 0.1}, part: big.scaled(0.1), daily: 24}, empty: empty, full: full}
	rows := r.whole()
	for _, want := range [][]string{
		{"", "without load, measured", "SCALE=0.1, measured", "the model, computed"},
		{"Pods that run all the time", "", "15000", "150000"},
		{"Jobs of runs a day", "", "120000", "1200000"},
		{"cores, trigger", "0", "0.100", "1"},
		{"peak GiB of memory, trigger", "0.250", "0.500", "2.75"},
		{"facts/s", "0", "5", "50"},
	} {
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("no row %q in %q", want, rows)
		}
	}
	if slices.ContainsFunc(rows, func(row []string) bool { return row[0] == "MiB on the bus at the end, quarantine" }) {
		t.Error("a stream that holds nothing has a row")
	}
}
