package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/jobstream/jobstream/test/e2e/parity"
)

const head = `# Conformance

What the built-in Job controller of Kubernetes 1.36 does, row by row, and the tests which show that jobstream does the same.
This page is made by ` + "`make conformance`" + ` from the results of those tests, and only if every row has a test that
passed and none that failed. ✓ passed, ○ skipped on this machine, with a printed reason.

- **same**: a Job that runs under both controllers at once, on one control plane and one node; status, conditions, Events, Pods
  and logs are compared (` + "`test/e2e/parity`" + `);
- **script**: a transcript of the Job function (` + "`functions/job/testdata`" + `);
- **worlds**: the simulator, which crashes, repeats, reorders and loses (` + "`internal/sim`" + `);
- **e2e**, **oracle**, **differential**: ` + "`test/e2e`" + ` on the real control plane; the API server's own validation; upstream's own code on the same input.

Upstream's tests: IT is ` + "`test/integration/job`" + `, UT ` + "`pkg/controller/job`" + `, E2E ` + "`test/e2e/apps`" + `, VT the API server's validation.

`

// page returns the whole page.
func page(have results) string {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("## Behaviours\n\n| row | behaviour | upstream's tests | jobstream's |\n|---|---|---|---|\n")
	writeRows(&b, rows, have)
	b.WriteString("\n## What jobstream adds\n\n| row | behaviour | upstream's tests | jobstream's |\n|---|---|---|---|\n")
	writeRows(&b, rowsOfExtensions, have)
	b.WriteString("\n## What differs on purpose\n\nEvery case below is compared down to the last label. Only the following differs; a difference that no case shows any\nmore fails the tests.\n\n| a Job of jobstream's | why |\n|---|---|\n")
	for _, d := range parity.Differences {
		fmt.Fprintf(&b, "| %s | %s |\n", d.What, d.Why)
	}
	b.WriteString("\n## Exceptions\n\n| what | why |\n|---|---|\n")
	for _, e := range exceptions {
		fmt.Fprintf(&b, "| %s | %s |\n", e.what, e.why)
	}
	b.WriteString("\n## Cases that run under both controllers\n\n| manifest | of | shows | ends alike |\n|---|---|---|---|\n")
	for _, c := range parity.Cases {
		from := "jobstream"
		if c.Documented {
			from = "the Kubernetes documentation"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.Title(), from, c.Shows, mark(have[caseTest(c.Title())]))
	}
	return b.String()
}

func writeRows(b *strings.Builder, rows []row, have results) {
	for _, r := range rows {
		tests := r.tests
		if r.id == "documented" {
			tests = nil // they have a table of their own
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", r.id, r.does, r.upstream, marks(tests, have))
	}
}

// marks lists tests with their results.
func marks(tests []test, have results) string {
	if len(tests) == 0 {
		return "[the table below](#cases-that-run-under-both-controllers)"
	}
	var words []string
	for _, t := range tests {
		words = append(words, shortName(t)+" "+mark(have[t]))
	}
	return strings.Join(words, "<br>")
}

func mark(how string) string {
	switch how {
	case "pass":
		return "✓"
	case "skip":
		return "○"
	}
	return "✗"
}

// shortName returns the page's name of a test.
func shortName(t test) string {
	if name, ok := strings.CutPrefix(t.name, parityTest); ok {
		return "same `" + name + "`"
	}
	if name, ok := strings.CutPrefix(t.name, "TestScripts/"); ok {
		return "script `" + name + "`"
	}
	if t == worlds[0] {
		return "worlds"
	}
	return path.Base(t.pkg) + " `" + t.name + "`"
}
