package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mutant is one change of one operator.
type mutant struct {
	file, kind string
	// line is the line of code with the operator in brackets.
	line string
}

func (m mutant) String() string { return fmt.Sprintf("%s: %s: %s", m.file, m.kind, m.line) }

// place is where in the file a mutant is.
type place struct {
	mutant
	number, column int // from 1; the column counts bytes
}

// replacements are what gremlins replaces an operator with, by its kinds.
var replacements = map[string]map[string]string{
	"ARITHMETIC_BASE":       {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
	"CONDITIONALS_BOUNDARY": {">=": ">", ">": ">=", "<=": "<", "<": "<="},
	"CONDITIONALS_NEGATION": {"==": "!=", "!=": "==", ">=": "<", "<": ">=", ">": "<=", "<=": ">"},
	"INCREMENT_DECREMENT":   {"++": "--", "--": "++"},
	"INVERT_ASSIGNMENTS":    {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="},
	"INVERT_BITWISE":        {"&": "|", "|": "&", "^": "&", "&^": "&", "<<": ">>", ">>": "<<"},
	"INVERT_BWASSIGN":       {"&=": "|=", "|=": "&=", "^=": "&=", "&^=": "&=", "<<=": ">>=", ">>=": "<<="},
	"INVERT_LOGICAL":        {"&&": "||", "||": "&&"},
	"INVERT_LOOPCTRL":       {"break": "continue", "continue": "break"},
	"INVERT_NEGATIVES":      {"-": "+"},
}

// find returns the mutants of one package without its subfolders. With a git revision it leaves out the lines that do not differ
// from it.
func (t tester) find(ctx context.Context, dir string) ([]place, error) {
	results, err := os.CreateTemp("", "mutants-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(results.Name())
	defer results.Close()
	args := []string{"unleash", "./" + dir, "--dry-run", "--silent", "--output", results.Name(), "--exclude-files", "/"} // those of subfolders
	for kind := range replacements {
		args = append(args, "--"+strings.ToLower(strings.ReplaceAll(kind, "_", "-")))
	}
	if t.diff != "" {
		args = append(args, "--diff", t.diff)
	}
	if output, err := exec.CommandContext(ctx, t.program, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	return read(results, dir)
}

// report is what gremlins writes.
type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type, Status string
			Line, Column int
		}
	}
}

func read(in io.Reader, dir string) (all []place, err error) {
	var r report
	if err := json.NewDecoder(in).Decode(&r); err != nil && !errors.Is(err, io.EOF) { // empty without a mutant
		return nil, err
	}
	for _, f := range r.Files {
		file := filepath.ToSlash(filepath.Join(dir, f.Name))
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range f.Mutations {
			if m.Line < 1 || m.Line > len(lines) || replacements[m.Type] == nil {
				return nil, fmt.Errorf("%s:%d: %s is no mutant that is known", file, m.Line, m.Type)
			}
			if marked := mark(lines[m.Line-1], m.Column); m.Status != "SKIPPED" && replacements[m.Type][operator(marked)] != "" {
				all = append(all, place{mutant: mutant{file, m.Type, marked}, number: m.Line, column: m.Column})
			}
		}
	}
	return all, nil
}

// apply returns the source with the mutant.
func (p place) apply(source string) string {
	lines := strings.SplitAfter(source, "\n")
	line, old := lines[p.number-1], operator(p.line)
	lines[p.number-1] = line[:p.column-1] + replacements[p.kind][old] + line[p.column-1+len(old):]
	return strings.Join(lines, "")
}

// opening and closing enclose the operator that a mutant changes.
const opening, closing = "⟦", "⟧"

// operators are all that are replaced, the longest first.
var operators = []string{"continue", "break", "&^=", "<<=", ">>=", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>", "&^",
	"++", "--", "+", "-", "*", "/", "%", "<", ">", "&", "|", "^"}

// mark puts the operator at the column in brackets.
func mark(line string, column int) string {
	at := min(max(column-1, 0), len(line))
	for _, o := range operators {
		if strings.HasPrefix(line[at:], o) {
			return strings.TrimSpace(line[:at] + opening + o + closing + line[at+len(o):])
		}
	}
	return strings.TrimSpace(line[:at] + opening + closing + line[at:])
}

// operator returns what stands in the brackets.
func operator(marked string) string {
	_, after, _ := strings.Cut(marked, opening)
	o, _, _ := strings.Cut(after, closing)
	return o
}
