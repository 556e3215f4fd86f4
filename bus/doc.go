// Package bus is the JetStream adapter: it carries facts, stores the memory of functions, and fires the timers that wake them. It
// knows subjects, streams and consumers, and nothing of Jobs.
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
//	floor     $KV.jobstream_<cluster>_state_<function>._floor.<partition>   where a new consumer begins          |
//	                                                                                                             v
//	stream    quarantine.<cluster>.<function>.<namespace>.<uid>             <-- unreadable, or broke a function ----|
//	                                                                                                             |
//	stream    jobstream.events.<cluster>.<namespace>.<kind>.<word>.<name>    <-- Announce: public events --------'
//	             |
//	             '--> subscribers: docs/events.md
//
// Three things keep it simple:
//
//   - Everything is delivered at least once and may come late or out of order. A fact that is published twice within
//     ten minutes is stored once; after that, the receiver's own comparison of versions takes over.
//   - Losing the bus is safe for counts, and so this package repairs: it recreates whatever is missing, be it one
//     consumer, a stream or the whole server, and Losses tells publishers to list the cluster again.
//   - A stream that is recreated never repeats a sequence number of its predecessor (see firstSequence), so that an
//     old revision or a late acknowledgement can never match a new message by accident.
//
// Where to read on: connect.go and check.go for the start, topology.go for the streams and names.go for their names, watch.go for
// how they are kept alive, publish.go, consume.go and floor.go for facts, members.go for heartbeats, announce.go and the package cloudevent
// for public events, inspect.go, read.go and requeue.go for operators.
//
// A program on the bus has a Role (role.go). deploy/nats/accounts.conf gives the user of each role exactly the permissions that
// it needs. An Inspector tries all of them (inspect_permissions.go), and also those that no program needs (inspect_open.go). The
// role Everything needs what both others need below facts.<cluster>.>, timers.<cluster>.>, quarantine.<cluster>.>,
// members.<cluster>, jobstream.events.<cluster>.>, $KV.<bucket>.>, $JS.API.> and $JS.ACK.>, and to subscribe to members.<cluster>
// and _INBOX_jobstream_<cluster>.>; "requeue" also publishes to fired.<cluster>.>. Credentials are files that are read at every
// connection (credentials.go). When the server refuses a request for want of permission or has no room, the bus logs it once with
// the remedy, and is not ready until it is set right (problems.go).
package bus
