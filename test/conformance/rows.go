package main

import (
	"strings"

	"github.com/jobstream/jobstream/test/e2e/parity"
)

// A row is one behaviour of the built-in Job controller of Kubernetes 1.36.
type row struct {
	id string
	// does is the behaviour.
	does string
	// upstream are the tests of Kubernetes for it: IT is test/integration/job, UT is pkg/controller/job, E2E is test/e2e/apps,
	// VT is the validation of the API server.
	upstream string
	// tests are those of this repository.
	tests []test
}

// rows are all behaviours, in the order in which a Job meets them.
var rows = joined(rowsOfStatus, rowsOfPods, rowsOfFailure, rowsOfIndexes, rowsOfOwnership, rowsOfTracking)

func joined(groups ...[]row) (all []row) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// all concatenates lists of tests.
func all(lists ...[]test) (tests []test) {
	for _, l := range lists {
		tests = append(tests, l...)
	}
	return tests
}

// of names tests of one package.
func of(pkg string) func(names ...string) []test {
	return func(names ...string) (tests []test) {
		for _, n := range names {
			tests = append(tests, test{pkg, n})
		}
		return tests
	}
}

var (
	e2e          = of("test/e2e")
	oracle       = of("test/oracle")
	differential = of("test/differential")
	job          = of("functions/job")
	pod          = of("functions/pod")
	act          = of("internal/cluster/act")
	app          = of("internal/app")
	engine       = of("internal/engine")
	laws         = []test{{"functions/catalog", "TestLaws"}}
	worlds       = []test{{"internal/sim", "TestWorlds"}}
)

// scripts are transcripts in functions/job/testdata.
func scripts(names ...string) (tests []test) {
	for _, n := range names {
		tests = append(tests, test{"functions/job", "TestScripts/" + n})
	}
	return tests
}

// parityTest is the test that runs the cases of the package parity.
const parityTest = "TestJobsEndAsUnderTheBuiltInController/with/"

// same returns cases of the package parity, which run under both controllers and compare: this repository's manifests, by their
// names without ".yaml".
func same(names ...string) (tests []test) {
	for _, n := range names {
		file, rest, more := strings.Cut(n, ", ")
		title := file + ".yaml"
		if more {
			title += ", " + rest
		}
		tests = append(tests, caseTest(title))
	}
	return tests
}

// caseTest returns the test of the case with that title, in the form of "go test".
func caseTest(title string) test {
	return test{"test/e2e", parityTest + strings.ReplaceAll(title, " ", "_")}
}

// caseTests returns the tests of all cases.
func caseTests() (tests []test) {
	for _, c := range parity.Cases {
		tests = append(tests, caseTest(c.Title()))
	}
	return tests
}
