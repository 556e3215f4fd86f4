// Package oracle asks the API server's own code whether it would store what we propose: rest.BeforeUpdate with
// k8s.io/kubernetes' strategies for Jobs, on objects that were defaulted, encoded and converted as the API server does.
// There is no API server in it, so it judges some ten thousand writes a second.
//
//	oracle.go   the questions               rebuild.go   a batch/v1 Job out of our projection
//	draw/       random Jobs, statuses, Pods  stage/       our Job function on the simulator's API server, Pods placed by hand
//
// Its tests ask about every status write of the simulator's worlds (worlds_test.go), of the scripts (scripts_test.go) and of
// random snapshots (fuzz_test.go), and show for each rule of the API server that the oracle knows it (rules_test.go).
package oracle
