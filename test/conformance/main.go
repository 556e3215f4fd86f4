// Command conformance writes docs/conformance.md: what the built-in Job controller does, row by row, with the tests which show
// that jobstream does the same, and their results.
//
//	go test -json ./... > unit.json                         # in the root
//	go test -C test -json ./... > e2e.json
//	go run -C test ./conformance -out docs/conformance.md unit.json e2e.json
//
// It reads the results of the tests in any order and from any number of files; paths are those of the shell, relative to the
// module's root. If no test of a row has passed, or one has failed or not run, it returns an error and writes nothing.
//
//	rows*.go       the table: behaviours, upstream's tests, jobstream's
//	exceptions.go  what is out of scope, and what only jobstream does, each with its reason
//	results.go     reading "go test -json"
//	page.go        writing the page
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// root is the root of the repository, seen from the module test, where "go run -C test" runs.
const root = ".."

func main() {
	out := flag.String("out", filepath.Join("docs", "conformance.md"), "the file to write, seen from the root of the repository")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(out string, files []string) error {
	if len(files) == 0 {
		return fmt.Errorf("no results: name the files that \"go test -json\" has written")
	}
	have := results{}
	for _, name := range files {
		if err := have.readFile(fromRoot(name)); err != nil {
			return err
		}
	}
	if problems := have.problems(joined(rows, rowsOfExtensions)); len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintln(os.Stderr, p)
		}
		return fmt.Errorf("%d problems: %s is unchanged", len(problems), out)
	}
	return os.WriteFile(fromRoot(out), []byte(page(have)), 0o644) //nolint:gosec // everyone may read the page
}

func fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
