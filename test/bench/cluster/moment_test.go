package main

import (
	"testing"
	"time"

	"github.com/jobstream/jobstream/test/bench/report"
)

// measured are two minutes.
func measured() interval {
	from := moment{at: noon, usage: map[string]report.Usage{"trigger": {CPU: time.Second}}, facts: 100, turns: 10,
		requests: map[string]float64{"GET jobs": 10, "WATCH jobs": 5},
		own:      map[string]map[string]float64{"trigger": {}, "reconciler": {"GET jobs": 10}},
		streams:  map[string]stream{"facts": {bytes: 1000}}}
	to := moment{at: noon.Add(2 * time.Minute), usage: map[string]report.Usage{"trigger": {CPU: 13 * time.Second}}, facts: 700, turns: 130,
		requests: map[string]float64{"GET jobs": 250, "WATCH jobs": 100, "POST pods": 120},
		own:      map[string]map[string]float64{"trigger": {"LIST jobs": 12}, "reconciler": {"GET jobs": 130, "WATCH jobs": 60}},
		streams:  map[string]stream{"facts": {bytes: 25000}}}
	return interval{from, to}
}

func TestRatesOfAnInterval(t *testing.T) {
	i := measured()
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"cores", i.cores("trigger"), 0.1},
		{"facts/s", i.facts(), 5},
		{"turns/s", i.turns(), 1},
		{"bytes/s", i.grown("facts"), 200},
		{"bytes/s of a stream that is not there", i.grown("none"), 0},
		{"the reconciler's reads", i.sent("reconciler", "GET jobs"), 1},
		{"all clients' reads", i.sent("", "GET jobs"), 2},
		{"all of the trigger's", i.sentAll("trigger"), 0.1},
		{"all of the reconciler's, without watches", i.sentAll("reconciler"), 1},
		{"all, without watches", i.sentAll(""), 3},
		{"jobstream's", ownRate(i), 1.1},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestKindsOfRequests(t *testing.T) {
	r := &results{full: measured()}
	if got := r.kinds(); len(got) != 2 || got[0] != "GET jobs" || got[1] != "LIST jobs" {
		t.Errorf("%v, want GET jobs and LIST jobs", got)
	}
}

func TestNamesOfStreams(t *testing.T) {
	for long, want := range map[string]string{"jobstream_e2e_facts": "facts", "KV_jobstream_e2e_state_job": "state_job", "other": "other"} {
		if got := shortName(long); got != want {
			t.Errorf("%s is %s, want %s", long, got, want)
		}
	}
}
