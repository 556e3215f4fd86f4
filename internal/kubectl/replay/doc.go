// Package replay folds the stored facts about one object again, through the same pure function as the reconciler did, and writes
// down what it decides. It does no I/O and knows no clock.
//
//	record.go    what is known of an object: facts, state; the file that "decisions -o json" writes
//	fold.go      from a record to turns
//	world.go     what the API server answered, as later facts show it
//	evidence.go  which fact shows the result of an effect
//	inventory.go the snapshots that an empty state asks for
//	words.go     facts in the words of the transcripts in functions/*/testdata
//	text.go      turns as a transcript, and as a list of decisions
//
// The bus stores what the trigger saw. It does not store what the API server answered to the reconciler: those answers go straight
// into the next decision. But nearly every answer is an object as a watch shows it a moment later, and so the fact that shows the result
// of an effect is its answer:
//
//	facts   JobObserved@1              PodObserved@2       JobObserved@3            PodObserved@4
//	            |                        ^                  ^                           |
//	decisions   '--> CreatePod ----------'   WriteJobStatus-'                           '--> ...
//	                             answer                answer
//
// The bus does not store either which facts the reconciler has folded together in one turn: those that had arrived by then. So facts are
// collected until the function decides on effects that later facts show, for two seconds at most. An effect whose result no fact shows is
// marked: the API server may have refused it, or the reconciler was away. If a fact shows a status of the object to which no decision led, the
// transcript says from when on it may differ from what the reconciler decided.
package replay
