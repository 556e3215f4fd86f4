// Package bus is JetStream and nothing else: the durable road that facts travel, the memory that functions keep, and
// the clocks that wake them. It knows subjects, streams and consumers; it knows nothing of Jobs.
//
//	Publish   facts.<cluster>.<function>.<namespace>.<uid>.<kind>           what happened, as one message per observation
//	             |  the server's transform inserts the partition: FNV-1a of the UID modulo 32
//	             v
//	stream    facts.<cluster>.<partition>.<function>.<namespace>.<uid>.<kind>  --> consumer <function>-<partition>       --.
//	                                                                                                             |
//	Set       timers.<cluster>.<function>.<namespace>.<uid>.<name>          one schedule per subject             |
//	             |  the server's clock                                                                           v
//	             v                                                                                          Consume
//	stream    fired.<cluster>.<partition>.<function>.<namespace>.<uid>.<name>  --> consumer <function>-fired-<partition> --|
//	                                                                                                             |
//	Save      $KV.jobstream_<cluster>_state_<function>.<namespace>.<uid>    one value per key, compare-and-set   |
//	                                                                                                             v
//	stream    quarantine.<cluster>.<function>.<namespace>.<uid>             <-- what nobody could read or bear --|
//	                                                                                                             |
//	stream    jobstream.events.<cluster>.<namespace>.<kind>.<word>.<name>    <-- Announce: what has come of it --'
//	             |
//	             '--> whoever has subscribed: docs/events.md
//
// Three things keep it simple:
//
//   - Everything is delivered at least once and may come late or out of order. A fact that is published twice within
//     ten minutes is stored once; after that, the receiver's own comparison of versions takes over.
//   - Losing the bus is safe for counts, and so this package heals instead of mourning: whatever is missing, be it one
//     consumer, a stream or the whole server, is made again, and Losses tells whoever publishes to list the cluster anew.
//   - A stream that is made anew never repeats a sequence number of its predecessor (see firstSequence), so that an
//     old revision or a late acknowledgement can never hit a new message by accident.
//
// Where to read on: connect.go and check.go for the start, topology.go for the streams and names.go for what they are
// called, watch.go for how they are kept, publish.go and consume.go for the road itself, members.go for who shares it,
// announce.go for what leaves it, and the package cloudevent for how that lies in a message, inspect.go and requeue.go for
// people who look after it.
//
// A program on the bus has a Role (role.go). deploy/nats/accounts.conf is what the user of each role needs, to the letter: an Inspector
// tries all of it (inspect_permissions.go), and what nobody needs (inspect_open.go). Who may do Everything needs what both do
// below facts.<cluster>.>, timers.<cluster>.>, quarantine.<cluster>.>, members.<cluster>, jobstream.events.<cluster>.>, $KV.<bucket>.>, $JS.API.> and $JS.ACK.>,
// and to subscribe to members.<cluster> and _INBOX_jobstream_<cluster>.>; "requeue" also publishes to fired.<cluster>.>.
// Credentials are files that are read at every connection (credentials.go). What the server refuses while we run, and what it has no room
// for, is told once with its remedy, and makes us unready until it is set right (problem.go).
package bus
