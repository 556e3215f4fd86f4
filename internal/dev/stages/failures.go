package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
)

// failures passes on what a stage prints, and keeps of it what has failed: "go test" names a test where it fails, and its package
// later.
type failures struct {
	out io.Writer

	mu    sync.Mutex // guards all of it: the stage writes, and what reports that it still runs
	line  []byte     // that has not ended yet
	tests []string   // that have failed, of a package that is not named yet
	found []string
	tail  []string // the last lines, for a stage that fails without a test
}

var (
	failedTest    = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	failedPackage = regexp.MustCompile(`^FAIL\t(\S+)(.*)$`)
	// replays are lines that say how to run the same again: the simulators', chaos', rapid's, go's for a
	// corpus and for an order of tests.
	replays = regexp.MustCompile(`replay: |again: make |-rapid\.seed=|go test -run=Fuzz|-test\.shuffle `)
)

const tailLines = 15

// Write passes the text on and looks at its lines.
func (f *failures) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line = append(f.line, p...)
	for {
		line, rest, whole := bytes.Cut(f.line, []byte("\n"))
		if !whole {
			break
		}
		f.read(string(line))
		f.line = rest
	}
	return f.out.Write(p)
}

func (f *failures) read(line string) {
	if f.tail = append(f.tail, line); len(f.tail) > tailLines {
		f.tail = f.tail[1:]
	}
	switch test, pkg := failedTest.FindStringSubmatch(line), failedPackage.FindStringSubmatch(line); {
	case test != nil:
		f.tests = append(f.tests, test[1])
	case pkg != nil:
		if len(f.tests) == 0 {
			f.found = append(f.found, "  "+pkg[1]+pkg[2])
		}
		for _, name := range f.tests {
			f.found = append(f.found, "  "+pkg[1]+" "+name)
		}
		f.tests = nil
	case replays.MatchString(line):
		f.tests = append(f.tests, line) // stands below its test
	}
}

// of is what to print of a stage that has failed.
func (f *failures) of(stage string, err error) []string {
	what := slices.Concat(f.found, f.tests)
	if len(what) == 0 {
		for _, line := range f.tail {
			what = append(what, "  "+line)
		}
	}
	return append([]string{fmt.Sprintf("\n%s: %v", stage, err)}, what...)
}
