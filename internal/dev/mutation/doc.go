// Mutation changes one operator of the code at a time and runs tests: what none of them notices is a gap, or a change that changes
// nothing.
//
//	make mutation                               every package of packages.txt: hours
//	make mutation ONLY=functions/schedule       one of them
//	make mutation ONLY=internal/cluster/act/refusal.go   one file, which packages.txt names
//	make mutation MOST=100                      a hundred mutants of each package, evenly spread: an estimate of the score
//	make mutation-diff REF=main                 the lines that differ from REF: minutes
//
// Gremlins (github.com/go-gremlins/gremlins) finds the mutants. This program runs them, because gremlins takes the conditions of a
// switch for code that no test reaches, and runs no tests but those of the package itself; packages.txt names the others that
// count. Tests that only this program runs have the build tag "mutation": simulated worlds, as a test of the functions' packages.
//
// A survivor is printed as it stands in equivalent.txt, with the operator in brackets, so that it can be copied there with an
// argument for why no test can notice it:
//
//	functions/backoff/waits.go: CONDITIONALS_BOUNDARY: if d ⟦>⟧ longest {
//		d is set to longest, which it is.
//
// A whole run fails if a package has less than its score, or if an entry of equivalent.txt fits no survivor any more; a run of a
// diff fails with each survivor that has no argument there.
package main
