// Package functions is the pure middle, and the place where a newcomer starts. It holds no code itself.
//
//	fn            what a function is: Observe remembers, Plan decides; its example is a whole one
//	fn/fntest     the laws that every function keeps
//	effect        what Plan may ask for
//	job           the Job function: tracks the Pods of one Job
//	scheduledjob  the ScheduledJob function: decides each nominal time, makes Jobs; the same files where they apply
//	catalog       the one list of functions, each held against the laws
//	intervals     sets of integers that read "0-3,7"
//	backoff       how long to wait after the n-th failure
//	schedule      cron schedules as exact arithmetic over nominal times
//	policy        podFailurePolicy and successPolicy
//
// A function never does anything. It is given its state, what has happened and the time, and returns a new state and a
// list of effects:
//
//	          facts                    now
//	            |                       |
//	state --> Observe --> state --> Plan --> state, effects
//
// The engine commits the state first, does the effects second, and acknowledges the facts last. Everything may therefore
// be repeated, and a function has to be written so that it does not matter:
//
//  1. Plan decides from the state alone. An event only wakes it; a lost one can delay a decision but not change it.
//  2. What Plan wants is repeated until a fact shows that it is so. There is no "already asked" in any state.
//  3. Every effect names what must still be true for it: a name that one Pod only can have, a UID, a resourceVersion.
//  4. An observation that is older than the one remembered is ignored. Versions are compared within one resource type only.
//  5. An empty state knows nothing and takes inventory before it decides anything. State is memory, never truth.
//
// Two versions meet in every upgrade. Whoever changes a State, or what a function hears, raises the function's Version, so that
// no memory is taken for one of another shape; catalog/shapes_test.go finds out where it was forgotten, and says what to do.
//
// To add a behaviour: write the transcript that you want to read in job/testdata, change the function until it reads
// so, and run make sim, which kills, repeats and reorders everything around it. docs/contributing.md has the checklist
// for a function; examples/function is a small one with all that belongs to it.
package functions
