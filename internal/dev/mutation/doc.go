// Mutation changes one operator of the code at a time and runs the tests of its package: what no test notices is a gap, or a change
// that changes nothing. The changes and their runs are those of gremlins (github.com/go-gremlins/gremlins); this program chooses the
// packages, knows which survivors are equivalent, and prints the scores.
//
//	make mutation                               every package of packages.txt: hours
//	make mutation ONLY=functions/schedule       one of them
//	make mutation-diff REF=main                 the lines that differ from REF: minutes
//
// Tests that only mutation runs have the build tag "mutation": a few hundred simulated worlds, as a test of the functions' packages.
//
// A survivor is printed as it stands in equivalent.txt, with the operator in brackets, so that it can be copied there with an
// argument for why no test can notice it:
//
//	functions/backoff/waits.go: CONDITIONALS_BOUNDARY: if d ⟦>⟧ longest {
//		d is set to longest, which it is.
//
// A whole run fails if a package has less than its score, or if an entry of equivalent.txt fits no mutant any more; a run of a
// diff fails with each survivor that stands there without an argument.
package main
