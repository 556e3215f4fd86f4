package catalog_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTrackingNamesWhatExists: docs/tracking.md leads from a step of KEP-2307 to a file and its functions. A file without a folder
// is one of functions/job.
func TestTrackingNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile("../../docs/tracking.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([\\w/]+\\.go)`|`([\\w.]+)`")
	files, declared, file := 0, map[string]bool{}, ""
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(cells[2], -1) {
			switch {
			case m[1] != "":
				if file = m[1]; !strings.Contains(file, "/") {
					file = "functions/job/" + file
				}
				files, declared = files+1, declarations(t, filepath.Join("../..", file))
			case file != "" && m[2] != "" && !declared[m[2]]:
				t.Errorf("%s does not declare %s: %s", file, m[2], line)
			}
		}
		file = ""
	}
	if files < 20 {
		t.Fatalf("only %d files are named: the page is written in another form than this test reads", files)
	}
}

// declarations returns the functions of a file; a method also as "receiver.method".
func declarations(t *testing.T, file string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		out[f.Name.Name] = true
		if f.Recv != nil {
			receiver := f.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if name, ok := receiver.(*ast.Ident); ok { // else its type has parameters
				out[name.Name+"."+f.Name.Name] = true
			}
		}
	}
	return out
}
