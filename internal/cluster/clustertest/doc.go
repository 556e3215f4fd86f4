// Package clustertest is an API server for the tests of internal/cluster, act and watch, and a World of one namespace in it for each
// test: it makes Jobs, Pods and ScheduledJobs as users and kubelets do, and counts or breaks the requests of what is tested.
package clustertest
