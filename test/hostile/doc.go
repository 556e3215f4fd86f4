// Package hostile attacks a running jobstream as a user who may write in one namespace, or a client that can write on the bus,
// would, and examines the effect on a peaceful neighbour. API server, NATS server and binaries are real. The attackers are users
// of the API server with the rights of a namespace's administrator, no more, and clients of NATS.
//
//	peace_test.go      the peaceful namespace: Jobs whose counts are known, and how long a Job of one Pod takes
//	tenant_test.go     the attacker: a user who may administer one namespace
//	attacks_test.go    unexpected objects that the API server accepts: one case each
//	forged_test.go     Pods and Jobs that claim to belong to another namespace's
//	bus_test.go        facts, states and timers that a client of NATS has forged
//	large_test.go      lists and states that are too large for a message
//	full_test.go       streams that a client of NATS has filled
//	definition_test.go ScheduledJobs that cannot be listed because of a conversion webhook (converter_test.go)
//	neighbour_test.go  numbers: selectors, Jobs, Pods
//
// After each attack the peaceful Jobs must have ended with exact counts and in time, and every program must be the same process
// as before, alive and ready: no attack may make a restart necessary.
//
// # Run one attack
//
//	make controlplane                                              # once
//	go test -C test ./hostile -v -run 'Attacks/.*UID'
//	JOBSTREAM_E2E_LOGS=/tmp/hostile go test -C test ./hostile -v   # keeps what every part has printed
//
// Two more promises are tested in test/e2e: permissions_test.go shows that the bus of deploy/nats needs credentials, and
// leave_test.go that an uninstallation keeps ScheduledJobs.
//
// docs/security.md lists what each access gives, what prevents the rest, and which test shows it.
package hostile
