// Package differential compares jobstream's pure functions, and whole turns and lives of its Job function, with the built-in Job
// controller of Kubernetes on the same random input.
//
//	upstream/         the built-in controller's unexported functions, linked to, and the controller in a world of its own
//	pure_test.go      intervals, policies, times
//	fleet_test.go     which Pods go, which indexes come
//	backoff_test.go   backoff records over several turns
//	sync_test.go      whole turns, from any snapshot until nothing moves
//	lives_test.go     one new Job under both: users, nodes and time do the same to both, step by step
//	intended_test.go  intended differences, and unreachable states
//
// A property that fails prints the smallest input that it found, both results, and the flags that replay it.
package differential
