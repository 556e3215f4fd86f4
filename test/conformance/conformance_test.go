package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobstream/jobstream/test/e2e/parity"
)

// Every test that the page names exists. Subtests are looked up by their names in the source.
func TestEveryTestThatIsNamedExists(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range joined(rows, rowsOfExtensions) {
		if seen[r.id] || r.does == "" || r.upstream == "" || len(r.tests) == 0 || strings.Contains(r.does+r.upstream, "|") {
			t.Errorf("row %q is duplicate, incomplete, or breaks the table", r.id)
		}
		seen[r.id] = true
		for _, named := range r.tests {
			if err := exists(named); err != "" {
				t.Errorf("row %s: %s: %s", r.id, named, err)
			}
		}
	}
}

// exists returns what is wrong with the name of a test; "" if nothing is.
func exists(named test) (problem string) {
	dir := filepath.Join("..", root, filepath.FromSlash(named.pkg))
	if title, ok := strings.CutPrefix(named.name, parityTest); ok {
		for _, c := range parity.Cases {
			if strings.ReplaceAll(c.Title(), " ", "_") == title {
				return ""
			}
		}
		return "there is no such case"
	}
	if script, ok := strings.CutPrefix(named.name, "TestScripts/"); ok {
		if _, err := os.Stat(filepath.Join(dir, "testdata", script+".txt")); err != nil {
			return err.Error()
		}
		return ""
	}
	source, err := testSource(dir)
	if err != nil {
		return err.Error()
	}
	words := strings.Split(named.name, "/")
	if !regexp.MustCompile(`(?m)^func ` + words[0] + `\(t \*testing\.T\)`).MatchString(source) {
		return "there is no such function"
	}
	for _, w := range words[1:] {
		if !strings.Contains(source, `"`+strings.ReplaceAll(w, "_", " ")+`"`) {
			return "there is no such subtest"
		}
	}
	return ""
}

// testSource returns the text of all test files of a folder.
func testSource(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	return all.String(), nil
}

// The page matches the tables, and every test on it has passed or was skipped.
func TestPageIsUpToDate(t *testing.T) {
	have := results{}
	for _, r := range joined(rows, rowsOfExtensions) {
		for _, named := range r.tests {
			have[named] = "pass"
		}
	}
	text, err := os.ReadFile(filepath.Join("..", root, "docs", "conformance.md"))
	if err != nil {
		t.Fatalf("%v: run \"make conformance\"", err)
	}
	if strings.ReplaceAll(string(text), mark("skip"), mark("pass")) != strings.ReplaceAll(page(have), mark("skip"), mark("pass")) {
		t.Error("docs/conformance.md differs from the tables: run \"make conformance\"")
	}
}

func TestResultsOfSeveralRuns(t *testing.T) {
	have := results{}
	for _, text := range []string{
		`{"Action":"run","Package":"github.com/jobstream/jobstream/a","Test":"TestX"}
{"Action":"pass","Package":"github.com/jobstream/jobstream/a","Test":"TestX"}
{"Action":"skip","Package":"github.com/jobstream/jobstream/a","Test":"TestY/of_two"}
{"Action":"fail","Package":"github.com/jobstream/jobstream/test/b","Test":"TestZ"}
{"Action":"pass","Package":"example.com/other","Test":"TestX"}
go: downloading something`,
		`{"Action":"pass","Package":"github.com/jobstream/jobstream/a","Test":"TestY/of_two"}
{"Action":"pass","Package":"github.com/jobstream/jobstream/test/b","Test":"TestZ"}`,
	} {
		if err := have.read(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	x, y, z := test{"a", "TestX"}, test{"a", "TestY/of_two"}, test{"test/b", "TestZ"}
	if have[x] != "pass" || have[y] != "pass" || have[z] != "fail" || len(have) != 3 {
		t.Errorf("read %v", have)
	}
	problems := have.problems([]row{{id: "good", tests: []test{x, y}}, {id: "bad", tests: []test{x, z}}, {id: "missing", tests: []test{{"a", "TestW"}}}, {id: "empty"}})
	want := []string{"row bad: test/b TestZ: fail", "row missing: a TestW has not run", "row missing: no test of it has passed", "row empty: no test of it has passed"}
	if strings.Join(problems, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems are %q, want %q", problems, want)
	}
}
