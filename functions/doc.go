// Package functions is the pure middle of jobstream, and the best place to start reading. It holds no code itself.
//
//	fn            what a function is: Observe remembers, Plan decides; its example is a complete function
//	fn/fntest     the laws that every function keeps
//	effect        what Plan may return
//	job           the Job function: tracks the Pods of one Job
//	pod           names and builds the Pods of a Job
//	outbox        what subscribers are told of a Job, until the bus has confirmed it
//	scheduledjob  the ScheduledJob function: decides each nominal time, creates Jobs; files are named as in job
//	catalog       the one list of functions; its tests check each against the laws
//	inventory     what every state knows of lists of the cluster
//	waiting       what the Pods of a Job wait for, in one line
//	intervals     sets of integers that read "0-3,7"
//	backoff       how long to wait after the n-th failure
//	schedule      cron schedules as exact arithmetic over nominal times
//	policy        podFailurePolicy and successPolicy
//
// A function has no side effects. It receives its state, the facts that arrived and the time, and returns a new state and a list
// of effects:
//
//	          facts                    now
//	            |                       |
//	state --> Observe --> state --> Plan --> state, effects
//
// The engine commits the state first, then carries out the effects, then acknowledges the facts. A crash in between repeats what
// came before it, so a function must be written such that repetition is harmless:
//
//  1. Plan decides from the state alone. An event only wakes it; a lost one can delay a decision but not change it.
//  2. Plan repeats an effect until a fact shows its result. No state records that an effect was "already requested".
//  3. Every effect names its precondition: a name that only one Pod can have, a UID, a resourceVersion.
//  4. An observation that is older than the one remembered is ignored. Versions are compared within one resource type only.
//  5. A function with an empty state takes inventory before it decides anything. State is memory, never truth.
//
// During every upgrade two versions run side by side. If you change a State or the facts that a function observes, raise the
// function's Version, so that neither version reads a state of the other's shape. catalog/shapes_test.go fails if you forget, and
// explains what to do.
//
// To add a behaviour, write the transcript that you want to read in job/testdata, change the function until it produces it, and
// run make sim, which kills, repeats and reorders everything around it. docs/contributing.md has the checklist for a function;
// examples/function is a small one with everything that belongs to it.
package functions
