// Package size says how much the tests do that could do ever more: those that draw at random, and those that break something
// for a while. "make test" runs the short forms, "make test-long" the long ones, of the same tests.
//
// How many worlds the simulators live through, and how long chaos lasts, the Makefile says itself: SEEDS and MINUTES.
package size

import (
	"os"
	"time"
)

// Env names the environment variable that asks for the long forms, by any value. A run with it wants -count=1: "go test" does not know
// that the variable changes a result that it has cached.
const Env = "JOBSTREAM_LONG"

var (
	// OracleChecks are on how many inputs each property of test/oracle is tried.
	OracleChecks = of(3_000, 15_000)
	// DifferentialChecks are on how many inputs each property of test/differential is tried.
	DifferentialChecks = of(2_000, 10_000)
	// OracleWorlds are the simulator's worlds whose status writes test/oracle judges.
	OracleWorlds = of(2_000, 20_000)

	// CrashCompletions are those of a Job in test/e2e that something breaks under: what is under way at that moment, which
	// parallelism bounds, is what may be miscounted, so a shorter run shows as much.
	CrashCompletions = of(250, 1_000)
	// SubscriberJobs are those whose events a subscriber in test/e2e receives while it is killed 20 times.
	SubscriberJobs = of(400, 1_000)
	// ScheduleTime is how long test/e2e watches a schedule of every second while programs are killed.
	ScheduleTime = of(time.Minute, 5*time.Minute)
	// SleepDivisor is by what a Pod of test/e2e/parity that sleeps sleeps less than its manifest says: nothing is learnt from the
	// rest of the time.
	SleepDivisor = of(10, 1)
	// OutageTime is how long the API server of test/e2e answers with 429 and 500.
	OutageTime = of(15*time.Second, time.Minute)

	// HistoryDays are how many days a schedule of every minute has run whose history the plugin reads.
	HistoryDays = of(1, 7)

	// FailoverRounds are how often package bus kills one of three NATS servers under load: each of three leaders once, or
	// four times.
	FailoverRounds = of(3, 12)
)

func of[T any](short, long T) T {
	if os.Getenv(Env) != "" {
		return long
	}
	return short
}
