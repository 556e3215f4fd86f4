package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// module is the prefix of this repository's packages.
const module = "github.com/jobstream/jobstream/"

// A test is a test of this repository: the folder of its package, and its name as "go test" prints it.
type test struct{ pkg, name string }

func (t test) String() string { return t.pkg + " " + t.name }

// results are the results of tests: "pass", "fail" or "skip".
type results map[test]string

// readFile reads what "go test -json" has written.
func (r results) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := r.read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (r results) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24) // a line of output may be long
	for lines.Scan() {
		var e struct{ Action, Package, Test string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			if strings.HasPrefix(lines.Text(), "{") {
				return fmt.Errorf("%w: %.200s", err, lines.Text())
			}
			continue // the go command's own words, such as "go: downloading"
		}
		pkg, ok := strings.CutPrefix(e.Package, module)
		if !ok || e.Test == "" {
			continue
		}
		t := test{pkg, e.Test}
		switch e.Action {
		case "fail":
			r[t] = e.Action
		case "pass", "skip":
			if r[t] == "" || r[t] == "skip" { // of several runs the worst counts, except one that was skipped
				r[t] = e.Action
			}
		}
	}
	return lines.Err()
}

// problems returns why rows are not shown to hold.
func (r results) problems(rows []row) (list []string) {
	for _, row := range rows {
		passed := 0
		for _, t := range row.tests {
			switch how := r[t]; how {
			case "pass":
				passed++
			case "skip": // it has printed the reason, and the row's other tests count
			case "":
				list = append(list, fmt.Sprintf("row %s: %s has not run", row.id, t))
			default:
				list = append(list, fmt.Sprintf("row %s: %s: %s", row.id, t, how))
			}
		}
		if passed == 0 {
			list = append(list, fmt.Sprintf("row %s: no test of it has passed", row.id))
		}
	}
	return list
}
