// Package e2e proves the promises of jobstream on a real API server, a real NATS server and with the real binaries as
// processes of their own, whose Pods run as processes of this machine. Nothing is simulated; what is killed, is killed
// with -9.
package e2e
