package main

import "testing"

// Requests of the node, and the benchmark's own, are not the controller's.
func TestRequestsOfTheController(t *testing.T) {
	c := cost{Requests: map[string]float64{"PUT jobs/status": 9, "POST jobs": 1, "POST pods": 1500, "POST pods/binding": 1500, "WATCH pods": 3}}
	if writes, ours := c.count(statusWrite), c.count(workload{}.ofController); writes != 9 || ours != 1509 {
		t.Errorf("%v status writes, %v requests of the controller, want 9 and 1509", writes, ours)
	}
}

// Who makes Jobs is the benchmark, or the controller.
func TestOfController(t *testing.T) {
	for request, want := range map[string][2]bool{
		"POST jobs": {false, true}, "POST pods": {true, true}, "PUT cronjobs/status": {true, true}, "WATCH jobs": {false, false}, "POST pods/binding": {false, false},
	} {
		if got := [2]bool{workload{}.ofController(request), workload{due: 1}.ofController(request)}; got != want {
			t.Errorf("%s: %v, without and with schedules, want %v", request, got, want)
		}
	}
}
