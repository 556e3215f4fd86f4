// Package parity runs one Job twice at the same time, under Kubernetes' built-in controller and under jobstream, on one control
// plane and one node, and compares what a user can see of both: status, conditions, Events, and every Pod down to its
// environment, hostname and logs.
//
//	case.go         what a case is, and how both sides of it are run
//	cases.go        the table: every manifest with what it shows
//	steps_*.go      what is done to a Job while it runs, where its manifest alone does not show the behaviour
//	side.go         the words in which those steps are written
//	portrait.go     what is seen of a Job in the end, without what differs from run to run
//	pods.go         the same of a Pod
//	differences.go  in what we differ on purpose, each with its reason; docs/conformance.md is made of it
//	testdata/       our manifests, one per feature
//
// # How a manifest is made to end in one way only
//
// The built-in controller looks at Pods once a second, the reconciler at once, and the node is busy. So nothing may depend on
// which is first. Where the order matters, Pods wait for a file in {{dir}}, a folder of that run alone, and a step creates the
// file once the Job is in the right state.
package parity
