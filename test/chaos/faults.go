package chaos

import (
	"math/rand/v2"
	"time"
)

// Kind is a way to break something.
type Kind string

// All kinds of faults.
const (
	KillTrigger      Kind = "kill -9 a trigger"
	FreezeTrigger    Kind = "freeze a trigger"
	KillReconciler   Kind = "kill -9 a reconciler"
	FreezeReconciler Kind = "freeze a reconciler"
	KillServer       Kind = "kill -9 a NATS server"
	KillLeader       Kind = "kill -9 the NATS leader"
	FreezeServer     Kind = "freeze a NATS server"
	KillAPIServer    Kind = "kill -9 the API server"
	CutNetwork       Kind = "cut the network"
	SlowNetwork      Kind = "slow the network"
	KillNode         Kind = "kill a node for good"
	WipeBus          Kind = "wipe the bus"
	ShiftClock       Kind = "shift a clock"
)

// Kinds lists all kinds.
var Kinds = []Kind{KillTrigger, FreezeTrigger, KillReconciler, FreezeReconciler, KillServer, KillLeader, FreezeServer,
	KillAPIServer, CutNetwork, SlowNetwork, KillNode, WipeBus, ShiftClock}

// Fault is one fault, from its start to its heal.
type Fault struct {
	Kind Kind
	// At is when it starts, since the start of the run; For is how long it lasts.
	At, For time.Duration
	// Target is a drawn number that selects a trigger, two parts, or whatever the kind breaks.
	Target int
	// By is how slow, or how far ahead.
	By time.Duration
}

const (
	// frozen is how long a process is frozen: long enough that every other process treats it as dead.
	frozen = 20 * time.Second
	// faultsApart is the average time between two faults: several overlap at any time.
	faultsApart = 7 * time.Second
	// calm is how long no fault occurs at the start, so that work is in progress first.
	calm = 5 * time.Second
)

// DrawFaults draws the faults of a run of that length. Every kind comes once before any comes again.
func DrawFaults(seed uint64, length time.Duration) (all []Fault) {
	dice := rand.New(rand.NewPCG(seed, 1))
	var deck []Kind
	for at := calm; at < length-calm; at += between(dice, faultsApart/2, faultsApart*3/2) {
		if len(deck) == 0 {
			deck = append(deck, Kinds...)
			dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		f := Fault{Kind: deck[0], At: at, For: between(dice, 0, 8*time.Second), Target: dice.IntN(1 << 20)}
		deck = deck[1:]
		switch f.Kind {
		case FreezeTrigger, FreezeReconciler, FreezeServer:
			f.For = frozen
		case CutNetwork, SlowNetwork:
			f.For = between(dice, 5*time.Second, 20*time.Second)
			f.By = between(dice, 20*time.Millisecond, 300*time.Millisecond)
		case KillNode:
			f.For = 3 * time.Second // until the Node is deleted
		case ShiftClock:
			f.For = between(dice, 10*time.Second, 20*time.Second)
			f.By = between(dice, time.Second, 10*time.Second).Truncate(time.Second)
			if dice.IntN(2) == 0 {
				f.By = -f.By
			}
		}
		all = append(all, f)
	}
	return all
}

func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(dice.Int64N(int64(most-least)))
}
