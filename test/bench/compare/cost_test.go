package main

import "testing"

// Requests of the node, and the benchmark's own, are not the controller's.
func TestRequestsOfTheController(t *testing.T) {
	c := cost{Requests: map[string]float64{"PUT jobs/status": 9, "POST jobs": 1, "POST pods": 1500, "POST pods/binding": 1500, "WATCH pods": 3}}
	if writes, ours := c.count(statusWrite), c.count(ofController); writes != 9 || ours != 1509 {
		t.Errorf("%v status writes, %v requests of the controller, want 9 and 1509", writes, ours)
	}
}
