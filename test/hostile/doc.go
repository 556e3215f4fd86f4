// Package hostile attacks a running jobstream, as somebody would who may write in one namespace, or who can write on the bus, and
// looks at what becomes of a peaceful neighbour. Real API server, real NATS server, real binaries; the attackers are users of the
// API server with the rights of a namespace's administrator, no more, and clients of NATS.
//
//	peace_test.go      the peaceful namespace: Jobs whose counts are known, and how long a Job of one Pod takes
//	tenant_test.go     the attacker: a user who may administer one namespace
//	attacks_test.go    objects that the API server accepts, and that nobody expects: one case each
//	forged_test.go     Pods and Jobs that say to belong to another namespace's
//	bus_test.go        facts, states and timers that a client of NATS has made up
//	large_test.go      lists and states that are too large for a message
//	full_test.go       streams that somebody has filled
//	definition_test.go ScheduledJobs that nobody can list, because of a conversion webhook (converter_test.go)
//	neighbour_test.go  numbers: selectors, Jobs, Pods
//
// After each attack the peaceful Jobs must have ended with exact counts and in time, and every program must be the same process as
// before, alive and ready: nothing here is allowed to need a restart.
//
// # Run one attack
//
//	make controlplane                                              # once
//	go test -C test ./hostile -v -run 'Attacks/uid'
//	JOBSTREAM_E2E_LOGS=/tmp/hostile go test -C test ./hostile -v   # keeps what every part has printed
//
// That nobody gets onto the bus of deploy/nats without credentials, and that whoever uninstalls jobstream keeps their ScheduledJobs, is shown
// in test/e2e: permissions_test.go, leave_test.go.
//
// docs/security.md lists what each access gives, what stops the rest, and which test shows it.
package hostile
