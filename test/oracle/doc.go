// Package oracle uses the API server's own code to find out whether it would store what jobstream writes: rest.BeforeUpdate with
// k8s.io/kubernetes' strategies for Jobs, on objects that are defaulted, encoded and converted as in the API server. Without an
// API server it judges some ten thousand writes a second.
//
//	oracle.go   the questions               rebuild.go   a batch/v1 Job out of our projection
//	draw/       random Jobs, statuses, Pods  stage/       our Job function on the simulator's API server, Pods placed by hand
//
// Its tests judge every status write of the simulator's worlds (worlds_test.go), of the scripts (scripts_test.go) and of random
// snapshots (fuzz_test.go), and show for each rule of the API server that the oracle enforces it (rules_test.go).
package oracle
