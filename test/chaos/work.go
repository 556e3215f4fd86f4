package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Task is one Job, or one ScheduledJob with runAt, that a user wants.
type Task struct {
	Name string
	Sort Sort
	// At is when it is created, since the start.
	At time.Duration
	// Then is when something else happens to it, since its creation: see Sort.
	Then time.Duration
	// Indexed reports which kind of Job it is, if its Sort leaves that open.
	Indexed bool
	// Seconds is how long its Pods work.
	Seconds string
}

// Sort is what a Task is for.
type Sort string

// The sorts of Tasks.
const (
	Single    Sort = "single"    // 1 Pod
	Twenty    Sort = "twenty"    // 20 Pods, some of which fail
	Large     Sort = "large"     // 400 Pods, some of which fail
	Failing   Sort = "failing"   // fails by its backoffLimit
	Policy    Sort = "policy"    // fails by its podFailurePolicy
	Indexes   Sort = "indexes"   // two of its indexes fail, the others complete
	Fragile   Sort = "fragile"   // only failures of nodes are allowed
	Paused    Sort = "paused"    // suspended, and resumed
	Deleted   Sort = "deleted"   // deleted while it runs
	Once      Sort = "once"      // a ScheduledJob with runAt
	Triggered Sort = "triggered" // a Job of the suspended ScheduledJob of that name, as "kubectl jobstream trigger" creates it
	firstOne       = time.Second // when the first is created
)

// deckOf is what comes in each round, in any order.
var deckOf = []Sort{Single, Single, Twenty, Twenty, Failing, Policy, Indexes, Fragile, Paused, Deleted, Once, Triggered, Large}

// tasksApart is the average time between two Tasks: a round in half a minute, which keeps two cores busy and no more.
const tasksApart = 2500 * time.Millisecond

// DrawTasks draws the work of a run of that length.
func DrawTasks(seed uint64, length time.Duration) (all []Task) {
	dice := rand.New(rand.NewPCG(seed, 2))
	var deck []Sort
	indexed := map[Sort]bool{}
	for at := firstOne; at < length; at += between(dice, tasksApart/4, tasksApart*7/4) {
		if len(deck) == 0 {
			deck = append(deck, deckOf...)
			dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		t := Task{Sort: deck[0], At: at, Then: between(dice, time.Second, 8*time.Second), Indexed: indexed[deck[0]],
			Seconds: fmt.Sprintf("%.1f", between(dice, 200*time.Millisecond, 3*time.Second).Seconds())}
		deck = deck[1:]
		indexed[t.Sort] = !indexed[t.Sort] // both kinds of each
		t.Name = fmt.Sprintf("%s-%03d", t.Sort, len(all))
		if t.Sort == Large {
			t.Seconds = "0.3"
		}
		all = append(all, t)
	}
	return all
}
