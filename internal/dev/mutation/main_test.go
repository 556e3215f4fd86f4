package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMark(t *testing.T) {
	for _, c := range []struct {
		name, line string
		column     int
		want       string
	}{
		{"a comparison", "	if a >= b {", 7, "if a ⟦>=⟧ b {"},
		{"the second of two", "	if a && b && c {", 12, "if a && b ⟦&&⟧ c {"},
		{"a statement", "		continue", 3, "⟦continue⟧"},
		{"no operator", "	x := y", 2, "⟦⟧x := y"},
		{"beyond the line", "x", 9, "x⟦⟧"},
	} {
		if got := mark(c.line, c.column); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestEquivalentsNeedAnArgument(t *testing.T) {
	for _, c := range []struct{ name, text, wrong string }{
		{"with one", "a/b.go: KIND: x ⟦<⟧ y\n\tBoth are the same,\n\tsince z.\n", ""},
		{"comments and empty lines", "# about\n\n", ""},
		{"without one", "a/b.go: KIND: x ⟦<⟧ y\n", "no argument"},
		{"an argument for nothing", "\tBoth are the same.\n", "equivalent.txt:1"},
		{"no operator", "a/b.go: KIND: x < y\n\tWhy.\n", "equivalent.txt:1"},
	} {
		all, err := parseEquivalents(c.text)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v", c.name, err)
		}
		for m, a := range all {
			if c.wrong == "" && (m.file != "a/b.go" || a.text != "Both are the same, since z.") {
				t.Errorf("%s: %v: %q", c.name, m, a.text)
			}
		}
	}
}

// What stands in equivalent.txt and packages.txt can be read, names packages that are tested, and lines that exist.
func TestFilesFitTheCode(t *testing.T) {
	t.Chdir("../../..")
	packages, err := parsePackages(packagesText, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if _, err := os.Stat(p.dir); err != nil {
			t.Error(err)
		}
	}
	known, err := parseEquivalents(equivalentText)
	if err != nil {
		t.Fatal(err)
	}
	for m := range known {
		source, err := os.ReadFile(m.file)
		if err != nil || !of(packages, m.file) {
			t.Errorf("%v: no file of packages.txt: %v", m, err)
			continue
		}
		if line := strings.NewReplacer(opening, "", closing, "").Replace(m.line); !strings.Contains(string(source), line) {
			t.Errorf("%s has no line %s any more", m.file, line)
		}
	}
}

// A stand-in for gremlins writes what it does: a package with a survivor beyond those that are argued for fails in a diff, and as a
// whole if its score is too low.
func TestScoresAndSurvivors(t *testing.T) {
	t.Chdir(t.TempDir())
	program := filepath.Join(t.TempDir(), "gremlins")
	script := `#!/bin/sh
while [ "$1" != --output ]; do shift; done
cat > "$2" <<X
{"files":[{"file_name":"p.go","mutations":[
{"type":"BOUNDARY","status":"LIVED","line":1,"column":3},{"type":"NEGATION","status":"KILLED","line":1,"column":3},
{"type":"BOUNDARY","status":"TIMED OUT","line":2,"column":3},{"type":"NEGATION","status":"NOT COVERED","line":2,"column":3},
{"type":"NEGATION","status":"NOT VIABLE","line":2,"column":3},{"type":"NEGATION","status":"SKIPPED","line":2,"column":3}]}]}
X
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it has to be executable
		t.Fatal(err)
	}
	if err := os.Mkdir("p", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("p/p.go", []byte("a < b\nc < d\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mutants, err := tester{program: program}.test(context.Background(), "p")
	if err != nil {
		t.Fatal(err)
	}
	known, err := parseEquivalents("p/p.go: BOUNDARY: a ⟦<⟧ b\n\tIt is.\n")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r, err := judge(&out, mutants, known)
	if err != nil {
		t.Fatal(err)
	}
	if r != (result{all: 4, killed: 2, equivalent: 1, survived: 1}) || out.String() != "p/p.go: NEGATION: c ⟦<⟧ d\n" {
		t.Errorf("%+v, printed %s", r, out.String())
	}
	if !r.fails(pack{"p", 70}, false) || r.fails(pack{"p", 60}, false) || !r.fails(pack{"p", 60}, true) {
		t.Errorf("a score of %.1f", r.score())
	}
}
