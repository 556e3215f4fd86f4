// Package clustertest has an API server for the tests of internal/cluster, act and watch, and a World for each test: one
// namespace. The World creates Jobs, Pods and ScheduledJobs as users and kubelets do, and counts or breaks the requests of the
// code under test.
package clustertest
