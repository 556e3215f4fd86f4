package main

import (
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
		for _, dir := range append([]string{p.name()}, p.others...) {
			if _, err := os.Stat(dir); err != nil {
				t.Error(err)
			}
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

// A stand-in for gremlins names the mutants of a tiny package; its real tests are run against each. One of them survives, one is
// argued for, one does not compile.
func TestScoresAndSurvivors(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "go.mod", "module tiny\n")
	write(t, "p/p.go", `package p

func Less(a, b int) bool { return a < b }
func Both(a, b bool) bool { return a && b }
func Text(a string) string { return a + "!" }
`)
	write(t, "p/p_test.go", `package p

import "testing"

func TestLess(t *testing.T) {
	if !Less(1, 2) || Less(2, 1) || !Both(true, true) || Text("a") == "" {
		t.Fail()
	}
}
`)
	program := filepath.Join(t.TempDir(), "gremlins")
	write(t, program, `#!/bin/sh
while [ "$1" != --output ]; do shift; done
cat > "$2" <<X
{"files":[{"file_name":"p.go","mutations":[
{"type":"CONDITIONALS_BOUNDARY","status":"RUNNABLE","line":3,"column":37},{"type":"CONDITIONALS_NEGATION","status":"NOT COVERED","line":3,"column":37},
{"type":"INVERT_LOGICAL","status":"RUNNABLE","line":4,"column":38},{"type":"ARITHMETIC_BASE","status":"RUNNABLE","line":5,"column":39},
{"type":"INVERT_LOGICAL","status":"SKIPPED","line":4,"column":38}]}]}
X
`)
	p := pack{dir: "p", score: 50}
	mutants, total, err := tester{program: program, workers: 2}.test(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	known, err := parseEquivalents("p/p.go: CONDITIONALS_BOUNDARY: func Less(a, b int) bool { return a ⟦<⟧ b }\n\tIt is.\n" +
		"p/p.go: CONDITIONALS_BOUNDARY: gone ⟦<⟧ b\n\tIt was.\n")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := judge(&out, mutants, known)
	if total != 4 || r != (result{all: 3, killed: 1, equivalent: 1, survived: 1}) || out.String() != "p/p.go: INVERT_LOGICAL: func Both(a, b bool) bool { return a ⟦&&⟧ b }\n" {
		t.Errorf("%+v of %d, printed %s", r, total, out.String())
	}
	if r.fails(p, false) || !r.fails(pack{dir: "p", score: 60}, false) || !r.fails(p, true) {
		t.Errorf("a score of %.1f", r.score())
	}
	if n := unmet(&out, []pack{p}, known); n != 1 || !strings.Contains(out.String(), "gone ⟦<⟧ b") {
		t.Errorf("%d entries fit no survivor: %s", n, out.String())
	}
}

// One file of a package, with those of its tests that need no server.
func TestOneFileOfAPackage(t *testing.T) {
	all, err := parsePackages("a/b 90 c d\n\n# comment\na/x.go 85 -run=TestX|TestY c\n", nil)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for i, c := range []struct {
		name, tests string
		others      int
		has, not    string
	}{{"a/b", "", 2, "a/b/x.go", "a/x.go"}, {"a/x.go", "TestX|TestY", 1, "a/x.go", "a/y.go"}} {
		if p := all[i]; p.name() != c.name || p.tests != c.tests || len(p.others) != c.others || !p.has(c.has) || p.has(c.not) || p.has("x.go") {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
	if one, err := parsePackages("a/b 90\na/x.go 85\n", []string{"./a/x.go"}); err != nil || len(one) != 1 || one[0].name() != "a/x.go" {
		t.Errorf("%+v, %v", one, err)
	}
}

func TestSamplesAreEvenlySpread(t *testing.T) {
	var all []place
	for n := range 100 {
		all = append(all, place{mutant: mutant{file: "a.go"}, number: 100 - n})
	}
	some := tester{most: 4}.sample(all)
	if len(some) != 4 || some[0].number != 1 || some[1].number != 26 || some[2].number != 51 || some[3].number != 76 {
		t.Errorf("%+v", some)
	}
	if most := (tester{most: 200}).sample(all); len(most) != 100 {
		t.Errorf("%d of 100, if 200 are allowed", len(most))
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if dir := filepath.Dir(file); dir != "." {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // one of them has to be executable
		t.Fatal(err)
	}
}
