package catalog_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestProposalsNameWhatExists: docs/proposals.md leads from each section of a proposal to files, their functions, and tests.
func TestProposalsNameWhatExists(t *testing.T) {
	rows := tables(t, "proposals.md", "shown by", func(page evidence, row []string) {
		page.code(row[2])
		page.shownBy(row[3])
	})
	if rows < 100 {
		t.Errorf("only %d rows are read: the page is written in another form than this test reads", rows)
	}
}

// TestProductionReadinessNamesWhatExists: docs/production-readiness.md answers each question with a metric, a flag or a test.
func TestProductionReadinessNamesWhatExists(t *testing.T) {
	rows := tables(t, "production-readiness.md", "metric, flag, test", func(page evidence, row []string) { page.shownBy(row[len(row)-1]) })
	if rows < 20 {
		t.Errorf("only %d rows are read: the page is written in another form than this test reads", rows)
	}
}

// tables calls do for each row of the tables of a page whose last column has that title, and returns how many rows these have.
func tables(t *testing.T, name, last string, do func(evidence, []string)) (rows int) {
	t.Helper()
	page := evidence{T: t, scripts: "functions/job/testdata"}
	reading := false
	for line := range strings.Lines(read(t, filepath.Join("../../docs", name))) {
		if title, ok := strings.CutPrefix(line, "## "); ok && strings.HasPrefix(title, "scheduledjob.md") {
			page.scripts = "functions/scheduledjob/testdata"
		} else if ok {
			page.scripts = "functions/job/testdata"
		}
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			reading = false
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case strings.TrimSpace(cells[len(cells)-1]) == last:
			reading = true
		case reading && !strings.HasPrefix(line, "|---"):
			rows++
			do(page, cells)
		}
	}
	return rows
}

// evidence checks what one page names.
type evidence struct {
	*testing.T
	// scripts is the folder of the transcripts.
	scripts string
}

// named matches what stands in backquotes, with the word before it.
var named = regexp.MustCompile("(?:([a-z0-9]+) )?`([^`]+)`")

// code checks files, and the functions that follow them.
func (p evidence) code(cell string) {
	p.Helper()
	var declared map[string]bool
	for _, m := range named.FindAllStringSubmatch(cell, -1) {
		switch name := m[2]; {
		case !strings.Contains(name, "/") && !declared[name]:
			p.Errorf("the file before %s does not declare it:%s", name, cell)
		case strings.HasSuffix(name, ".go"):
			declared = declarations(p.T, filepath.Join("../..", name))
		case strings.Contains(name, "/"):
			p.exists(name, cell)
		}
	}
}

// shownBy checks transcripts, manifests, planted bugs, metrics, flags, and tests after the folder of their package. Several of one
// kind follow each other.
func (p evidence) shownBy(cell string) {
	p.Helper()
	kind := ""
	for _, m := range named.FindAllStringSubmatch(cell, -1) {
		if m[1] != "" {
			kind = m[1]
		}
		switch name := m[2]; kind {
		case "scripts":
			p.exists(filepath.Join(p.scripts, name+".txt"), cell)
		case "same":
			p.exists(filepath.Join("test/e2e/parity/testdata", name), cell)
		case "mutants":
			p.contains("internal/sim/mutants/*.go", `name: "`+name+`"`, cell)
		case "metric", "flag": // internal/app.TestOperationsDocument checks that page against the programs
			p.contains("docs/operations.md", "`"+name+"`", cell)
		default:
			p.contains(filepath.Join(p.folder(kind), "*_test.go"), "\nfunc "+name+"(t *testing.T)", cell)
		}
	}
}

// folder returns the folder of a package that is named by its last element.
func (p evidence) folder(name string) string {
	p.Helper()
	for _, above := range []string{"", "functions", "internal", "internal/cluster", "internal/kubectl", "internal/sim", "test"} {
		if tests, _ := filepath.Glob(filepath.Join("../..", above, name, "*_test.go")); name != "" && len(tests) > 0 {
			return filepath.Join(above, name)
		}
	}
	p.Errorf("no package %q has tests", name)
	return ""
}

func (p evidence) exists(path, cell string) {
	p.Helper()
	if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
		p.Errorf("%v:%s", err, cell)
	}
}

// contains checks that one of the files has the text.
func (p evidence) contains(pattern, text, cell string) {
	p.Helper()
	files, _ := filepath.Glob(filepath.Join("../..", pattern))
	for _, file := range files {
		if strings.Contains(read(p.T, file), text) {
			return
		}
	}
	p.Errorf("%s has no %q:%s", pattern, strings.TrimSpace(text), cell)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
