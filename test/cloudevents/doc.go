// Package cloudevents compares this project's reading of the NATS binding of CloudEvents with the Go SDK's own modules for NATS,
// both ways and over a real server. Where both agree, the SDK is an oracle. Each test of an error of the SDK fails once that is
// fixed upstream: then docs/events.md must be corrected.
package cloudevents
