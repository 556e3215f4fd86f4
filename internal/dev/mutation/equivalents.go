package main

import (
	"bufio"
	"fmt"
	"strings"
)

// equivalents are mutants that no test can notice, each with the argument for that, and whether a run has met it.
type equivalents map[mutant]*argument

type argument struct {
	text string
	met  bool
}

// parseEquivalents reads entries of one line that names the mutant and indented ones with the argument. Lines with # are comments.
func parseEquivalents(text string) (equivalents, error) {
	all := equivalents{}
	var last *argument
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t") && last != nil:
			last.text = strings.TrimSpace(last.text + " " + strings.TrimSpace(line))
		default:
			parts := strings.SplitN(line, ": ", 3)
			if len(parts) != 3 || operator(parts[2]) == "" {
				return nil, fmt.Errorf("equivalent.txt:%d: not \"file: KIND: line with one operator in %s%s\"", n, opening, closing)
			}
			last = &argument{}
			all[mutant{parts[0], parts[1], parts[2]}] = last
		}
	}
	for m, a := range all {
		if a.text == "" {
			return nil, fmt.Errorf("equivalent.txt: no argument for %v", m)
		}
	}
	return all, nil
}
