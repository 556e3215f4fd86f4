// Package cloudevents holds our reading of the NATS binding of CloudEvents against the Go SDK's own modules for NATS, both
// ways and over a real server. The SDK is an oracle for what is the same in both, and each test of what it does wrong
// fails once it is mended upstream: docs/events.md says then what is not true any more.
package cloudevents
