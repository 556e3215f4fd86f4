// Package cloudevent encodes CloudEvents 1.0 in NATS messages, following the NATS protocol binding of the specification
// (cloudevents/spec, bindings/nats-protocol-binding.md, 1.0.3-wip). The Go SDK has modules for NATS, too. They neither encode nor
// decode what a header cannot hold, and send structured messages without a Content-Type; test/cloudevents pins that behaviour.
//
//	structured   Content-Type: application/cloudevents+json      the payload is the whole event as JSON
//	binary       ce-id, ce-source, … percent-encoded             the payload is the event's data
//
// Encode is strict. Decode is lenient where a message has only one meaning:
//
//   - A message that has neither a Content-Type nor any ce- header is read as structured: the binding 1.0.2 asked for
//     it, and the Go SDK still sends it. In binary mode such a message would be no event at all.
//   - Names of headers are case-insensitive, and values may be in double quotes, as the binding says.
//   - What should have been percent-encoded and was not is read literally: bytes that are valid UTF-8, and a percent sign
//     that no two hexadecimal digits follow.
//   - Where ce-datacontenttype is missing, the Content-Type of a binary message stands in for it, as it does in HTTP.
//
// Extensions are strings in binary mode, whose headers have no types; as JSON, a number or a truth value keeps its own.
package cloudevent
